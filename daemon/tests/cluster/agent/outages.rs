//! Outages of the cluster: DEL goes on, ADD states the reason.

use std::collections::BTreeMap;

use futures::future::join_all;
use ipam_api::client::Client;
use ipam_api::event::EventPage;

use crate::support::agent::Agent;
use crate::support::ask::{allocations, get, make_pools};
use crate::support::plugin::Plugin;
use crate::support::{Cluster, until};

/// Containers of one test.
pub(super) const CONTAINERS: usize = 100;
/// Runs of the plugin at once.
const AT_ONCE: usize = 8;

pub(super) async fn run_all(verb: &'static str, conf: &serde_json::Value) {
    let names: Vec<String> = (0..CONTAINERS).map(|number| format!("c{number}")).collect();
    for some in names.chunks(AT_ONCE) {
        let runs = some.iter().map(|name| async move { Plugin::new(verb, name, conf).run().await });
        for outcome in join_all(runs).await {
            outcome.succeeds();
        }
    }
}

/// Waits until nothing is held, and nothing waits in the journal.
pub(super) async fn all_is_free(cluster: &Cluster, agent: &Agent) {
    all_is_free_for(&cluster.ask(), agent).await;
}

/// The same for a client that may read.
pub(super) async fn all_is_free_for(client: &Client, agent: &Agent) {
    until("all addresses are free", async || match allocations(client).await.len() {
        0 => Ok(()),
        held => Err(format!("{held} are held\n{}", agent.logged())),
    })
    .await;
    until("all releases are delivered", async || {
        let journal = agent.check("journal").await;
        if journal.detail.starts_with("0 attachments") { Ok(()) } else { Err(journal.detail) }
    })
    .await;
}

/// The events have this many allocations, each released once.
pub(super) async fn released_once(cluster: &Cluster, allocations: usize) {
    let page: EventPage = get(&cluster.ask(), "/v1/events?kind=address&limit=1000").await.unwrap();
    let mut releases: BTreeMap<u64, usize> = BTreeMap::new();
    for event in page.items.iter().filter(|event| event.event_type == "address.released") {
        *releases.entry(event.allocation.unwrap()).or_default() += 1;
    }
    assert_eq!(releases.len(), allocations);
    assert!(releases.values().all(|count| *count == 1), "{releases:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dels_without_servers_succeed_and_are_delivered_once() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let agent = Agent::up(&cluster.urls(), "node-1", "").await;
    let conf = agent.network(&["web"]);
    run_all("ADD", &conf).await;
    assert_eq!(allocations(&cluster.ask()).await.len(), CONTAINERS);
    cluster.kill_all();
    run_all("DEL", &conf).await;
    cluster.start_all();
    cluster.ready().await;
    // A leader that dies in the middle of the delivery changes nothing.
    let leader = cluster.leader().await;
    cluster.members[leader].kill();
    all_is_free(&cluster, &agent).await;
    released_once(&cluster, CONTAINERS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_without_a_majority_fails_with_code_11_and_the_reason() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let agent = Agent::up(&cluster.urls(), "node-1", "status_grace_ms = 3600000").await;
    let conf = agent.network(&["web"]);
    Plugin::new("ADD", "c0", &conf).run().await.succeeds();
    cluster.members[0].kill();
    cluster.members[1].kill();
    let add = Plugin::new("ADD", "c1", &conf).deadline_ms(3_000);
    let text = add.run().await.fails(11);
    // On a busy machine the plugin's time ends before the member's answer.
    assert!(text.contains("no member leads") || text.contains("outcome is unknown"), "{text}");
    // The node stays in service: its containers run, and DEL works.
    Plugin::new("STATUS", "", &conf).run().await.succeeds();
    Plugin::new("DEL", "c0", &conf).run().await.succeeds();
    Plugin::new("DEL", "c1", &conf).run().await.succeeds();
    cluster.start(0);
    cluster.start(1);
    cluster.ready().await;
    all_is_free(&cluster, &agent).await;
}
