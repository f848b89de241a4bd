//! Report of the agent about its node.

use ipam_api::agent::Verdict;
use ipam_api::node_report::{AgentProblem, NodeAgent};

use crate::support::agent::Agent;
use crate::support::ask::get;
use crate::support::{Cluster, clocks, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_clock_is_a_warning() {
    let mut cluster = Cluster::of(1);
    let clock = cluster.dir.path().join("clock");
    clocks::set(&clock, "-1h");
    cluster.members[0].clock = Some(clock.clone());
    let cluster = cluster.all_up().await;
    let agent = Agent::up(&cluster.urls(), "node-1", "").await;
    for (offset, verdict, detail) in [
        // Forward only: the HTTP server's date stands still after its clock was set back.
        ("-1h", Verdict::Warning, "behind the node"),
        ("+0", Verdict::Ok, "differs from the clocks of the servers by"),
        ("+1h", Verdict::Warning, "ahead of the node"),
    ] {
        clocks::set(&clock, offset);
        until(&format!("the report has the offset {offset}"), async || {
            let found = agent.check("clock").await;
            let is_right = found.verdict == verdict && found.detail.contains(detail);
            if is_right { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surplus_capabilities_of_the_agent_are_a_warning() {
    let cluster = Cluster::up(1).await;
    let mut agent = Agent::up(&cluster.urls(), "node-1", "").await;
    let found = agent.check("capabilities").await;
    assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
    assert!(found.detail.contains("CAP_SYS_ADMIN") && !found.help.is_empty(), "{found:?}");
    agent.kill();
    agent.is_unprivileged = true;
    agent.start();
    agent.serves().await;
    let found = agent.check("capabilities").await;
    assert_eq!((found.verdict, found.detail.as_str()), (Verdict::Ok, "the agent has none"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_file_of_its_socket_is_not_ready() {
    let cluster = Cluster::up(1).await;
    let mut agent = Agent::up(&cluster.urls(), "node-1", "").await;
    for (is_ready, expected) in [(true, None), (false, Some(AgentProblem::SocketUnavailable)), (true, None)] {
        if is_ready {
            agent.kill();
            agent.start();
            agent.serves().await;
        } else {
            std::fs::remove_file(agent.socket()).unwrap();
        }
        until(&format!("the cluster knows {expected:?}"), async || {
            let heard: Result<NodeAgent, _> = get(&cluster.ask(), "/v1/nodes/default/node-1/agent").await;
            let heard = heard.map_err(|problem| problem.to_string())?;
            let is_right = heard.ready == is_ready && heard.problem == expected;
            if is_right { Ok(()) } else { Err(format!("{heard:?}")) }
        })
        .await;
    }
}
