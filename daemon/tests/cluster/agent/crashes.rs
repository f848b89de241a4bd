//! Crashes of a server or of the agent in the middle of the delivery of many DELs: each is executed once.

use serde_json::Value;

use crate::cluster::agent::outages::{CONTAINERS, all_is_free, released_once, run_all};
use crate::support::agent::Agent;
use crate::support::ask::make_pools;
use crate::support::proxy::{Proxy, Step};
use crate::support::{Cluster, until};

const DEL: &str = "/v1/attachments/release";
/// DELs before the crash.
const EARLIER: usize = 40;
const STEPS: [Step; 2] = [Step::Forwarded, Step::Answered];

/// Proxies in front of all members, which share one plan.
async fn proxies(cluster: &Cluster) -> Vec<Proxy> {
    let mut proxies = vec![Proxy::to(cluster.members[0].client).await];
    for member in &cluster.members[1..] {
        let proxy = proxies[0].beside(member.client).await;
        proxies.push(proxy);
    }
    proxies
}

async fn killed(proxy: &Proxy, agent: &Agent) {
    until("the crash has come", async || if proxy.has_killed() { Ok(()) } else { Err(agent.logged()) }).await;
}

/// Records DELs that no server has seen. The agent is stopped: nothing is delivered before the crash is
/// prepared.
async fn record_dels(cluster: &mut Cluster, agent: &mut Agent, conf: &Value) {
    run_all("ADD", conf).await;
    cluster.kill_all();
    run_all("DEL", conf).await;
    agent.kill();
    cluster.start_all();
    cluster.ready().await;
}

/// Crashes the member that leads, in the middle of a delivery.
async fn crash_leader(members: usize) {
    let mut cluster = Cluster::up(members).await;
    make_pools(&cluster.ask()).await;
    let proxies = proxies(&cluster).await;
    let urls: Vec<String> = proxies.iter().map(|proxy| proxy.url.clone()).collect();
    let mut agent = Agent::up(&urls, "node-1", "").await;
    let conf = agent.network(&["web"]);
    for (round, step) in STEPS.into_iter().enumerate() {
        record_dels(&mut cluster, &mut agent, &conf).await;
        let leader = cluster.leader().await;
        proxies[0].kill_after(EARLIER, cluster.members[leader].pid(), DEL, step);
        agent.start();
        killed(&proxies[0], &agent).await;
        cluster.members[leader].kill();
        cluster.start(leader);
        cluster.ready().await;
        all_is_free(&cluster, &agent).await;
        released_once(&cluster, (round + 1) * CONTAINERS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_member_that_crashes_while_dels_are_delivered_executes_each_once() {
    crash_leader(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_crashes_while_dels_are_delivered_changes_nothing() {
    crash_leader(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_crashes_while_it_delivers_dels_delivers_the_rest() {
    let mut cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let proxy = Proxy::to(cluster.members[0].client).await;
    let mut agent = Agent::up(std::slice::from_ref(&proxy.url), "node-1", "").await;
    let conf = agent.network(&["web"]);
    for (round, step) in STEPS.into_iter().enumerate() {
        record_dels(&mut cluster, &mut agent, &conf).await;
        agent.start();
        proxy.kill_after(EARLIER, agent.pid(), DEL, step);
        killed(&proxy, &agent).await;
        agent.kill();
        agent.start();
        agent.serves().await;
        all_is_free(&cluster, &agent).await;
        released_once(&cluster, (round + 1) * CONTAINERS).await;
    }
}
