//! STATUS: a node leaves service only if no server has answered for the grace.

use ipam_api::agent::Verdict;
use serde_json::Value;

use crate::support::agent::Agent;
use crate::support::ask::subnet_with_pool;
use crate::support::plugin::{Outcome, Plugin};
use crate::support::{Cluster, until};

async fn status(conf: &Value) -> Outcome {
    Plugin::new("STATUS", "", conf).run().await
}

/// Waits until STATUS fails; returns its text.
async fn fails(conf: &Value) -> String {
    until("the node is out of service", async || {
        let outcome = status(conf).await;
        if outcome.is_success() { Err("it is ready".to_owned()) } else { Ok(outcome.fails(50)) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_fails_once_no_server_has_answered_for_the_grace() {
    let mut cluster = Cluster::up(1).await;
    let agent = Agent::up(&cluster.urls(), "node-1", "status_grace_ms = 50").await;
    let conf = agent.network(&["web"]);
    let status = || async { Plugin::new("STATUS", "", &conf).run().await };
    until("the node is ready", async || {
        let outcome = status().await;
        if outcome.is_success() { Ok(()) } else { Err(format!("{outcome:?}\n{}", agent.logged())) }
    })
    .await;
    cluster.kill_all();
    let text = until("the node is out of service", async || {
        let outcome = status().await;
        if outcome.is_success() { Err("it is ready".to_owned()) } else { Ok(outcome.fails(50)) }
    })
    .await;
    assert!(text.contains("no server has answered for"), "{text}");
    let server = agent.check("server").await;
    assert_eq!(server.verdict, Verdict::Failed, "{server:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_leader_has_answered() {
    let mut cluster = Cluster::of(3);
    cluster.start(0);
    let agent = Agent::up(&cluster.urls(), "node-1", "status_grace_ms = 3000").await;
    let conf = agent.network(&["web"]);
    // The grace from the start must be over.
    fails(&conf).await;
    until("the answer of a member without a leader counts", async || {
        let identity = agent.check("identity").await;
        assert_eq!(identity.verdict, Verdict::Failed, "no member leads: {identity:?}");
        let outcome = status(&conf).await;
        if outcome.is_success() { Ok(()) } else { Err(format!("{outcome:?}\n{identity:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_leader_or_a_full_pool_leaves_the_node_in_service() {
    let mut cluster = Cluster::up(3).await;
    subnet_with_pool(&cluster.ask(), "web", "10.7.0.0/30", serde_json::json!({})).await;
    let agent = Agent::up(&cluster.urls(), "node-1", "").await;
    let conf = agent.network(&["web"]);
    for container in ["c1", "c2"] {
        Plugin::new("ADD", container, &conf).run().await.succeeds();
    }
    Plugin::new("ADD", "c3", &conf).run().await.fails(101);
    status(&conf).await.succeeds();
    let leader = cluster.leader().await;
    cluster.members[leader].kill();
    until("another member leads", async || {
        status(&conf).await.succeeds();
        let identity = agent.check("identity").await;
        if identity.verdict == Verdict::Ok { Ok(()) } else { Err(format!("{identity:?}")) }
    })
    .await;
    status(&conf).await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_agent_keeps_a_node_in_service_without_servers() {
    let cluster = Cluster::of(1);
    let agents = [("node-1", "servers"), ("node-2", "agent")].map(|(node, policy)| {
        let more = format!("status_grace_ms = 50\nstatus_policy = {policy:?}");
        let urls = cluster.urls();
        async move { Agent::up(&urls, node, &more).await }
    });
    let [by_servers, by_agent] = agents;
    let (by_servers, by_agent) = (by_servers.await, by_agent.await);
    fails(&by_servers.network(&["web"])).await;
    status(&by_agent.network(&["web"])).await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_starts_without_servers_has_the_grace_from_its_start() {
    let mut cluster = Cluster::up(1).await;
    let mut agent = Agent::up(&cluster.urls(), "node-1", "status_grace_ms = 3600000").await;
    let conf = agent.network(&["web"]);
    cluster.kill_all();
    agent.kill();
    agent.start();
    agent.serves().await;
    status(&conf).await.succeeds();
}
