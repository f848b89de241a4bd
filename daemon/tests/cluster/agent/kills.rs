//! Kills of the agent at the steps of ADD and DEL: nothing is lost, nothing is held twice.

use ipam_api::resource::Allocation;

use crate::cluster::agent::outages::all_is_free;
use crate::support::agent::Agent;
use crate::support::ask::{allocations, make_pools};
use crate::support::plugin::Plugin;
use crate::support::proxy::{Proxy, Step};
use crate::support::{Cluster, until};

const ADD: &str = "/v1/allocations";
const DEL: &str = "/v1/attachments/release";
/// Time limit of a run during which the agent is killed: the plugin tries again until then. A slow machine
/// needs seconds until the step of the kill.
pub(super) const KILLED_MS: u64 = 5_000;

/// A member behind a proxy, and an agent that knows the proxy only.
async fn scene() -> (Cluster, Proxy, Agent) {
    let cluster = Cluster::up(1).await;
    make_pools(&cluster.ask()).await;
    let proxy = Proxy::to(cluster.members[0].client).await;
    let agent = Agent::up(std::slice::from_ref(&proxy.url), "node-1", "").await;
    (cluster, proxy, agent)
}

async fn restart(agent: &mut Agent) {
    agent.kill();
    agent.start();
    agent.serves().await;
}

async fn held(cluster: &Cluster) -> Vec<Allocation> {
    allocations(&cluster.ask()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_survives_the_agent_at_each_step() {
    let (cluster, proxy, mut agent) = scene().await;
    let conf = agent.network(&["web", "web6"]);
    for (number, step) in [Step::Sent, Step::Answered].into_iter().enumerate() {
        let container = format!("c{number}");
        proxy.kill_at(agent.pid(), ADD, step);
        let killed = Plugin::new("ADD", &container, &conf).deadline_ms(KILLED_MS).run().await;
        assert!(proxy.has_killed(), "{step:?}");
        killed.fails(11);
        restart(&mut agent).await;
        // A runtime that repeats the ADD gets the addresses that the first one left.
        let before: Vec<u64> = held(&cluster).await.iter().map(|one| one.id).collect();
        Plugin::new("ADD", &container, &conf).run().await.succeeds();
        let after: Vec<u64> = held(&cluster).await.iter().map(|one| one.id).collect();
        assert_eq!(after.len(), 2, "{step:?}");
        assert!(before.iter().all(|id| after.contains(id)), "{step:?}: {before:?} {after:?}");
        Plugin::new("DEL", &container, &conf).run().await.succeeds();
        // The agent may answer a DEL from its journal before the cluster has the DEL.
        all_is_free(&cluster, &agent).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_del_survives_the_agent_at_each_step() {
    let (cluster, proxy, mut agent) = scene().await;
    let conf = agent.network(&["web", "web6"]);
    for (number, step) in [Step::Sent, Step::Answered].into_iter().enumerate() {
        let container = format!("c{number}");
        Plugin::new("ADD", &container, &conf).run().await.succeeds();
        proxy.kill_at(agent.pid(), DEL, step);
        Plugin::new("DEL", &container, &conf).deadline_ms(KILLED_MS).run().await.fails(11);
        assert!(proxy.has_killed(), "{step:?}");
        restart(&mut agent).await;
        // The journal has the DEL; no runtime repeats it.
        until("the DEL is delivered", async || match held(&cluster).await.len() {
            0 => Ok(()),
            held => Err(format!("{held} are held after {step:?}\n{}", agent.logged())),
        })
        .await;
        // The same container again is a new attachment.
        Plugin::new("ADD", &container, &conf).run().await.succeeds();
        Plugin::new("DEL", &container, &conf).run().await.succeeds();
        all_is_free(&cluster, &agent).await;
    }
}
