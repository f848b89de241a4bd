//! Members killed under load.

use std::sync::{Arc, Mutex};

use ipam_api::client::Client;
use ipam_api::cluster::Cluster as Shown;
use ipam_api::resource::Allocation;

use super::{many, restless};
use crate::kill::writers::{Ledger, Writers, held};
use crate::support::Cluster;
use crate::support::ask::{allocations, make_pools};
use crate::support::random::Random;

const WRITERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_three_killed_at_once_lose_nothing_acknowledged() {
    let rounds = many(50, 5);
    let mut random = Random::new();
    let mut cluster = restless().all_up().await;
    make_pools(&cluster.ask()).await;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut since = 0;
    for round in 0..rounds {
        let mut writers = Writers::start(WRITERS, round, &cluster.urls(), &ledger);
        writers.get_on(random.between(50, 300)).await;
        cluster.kill_all();
        writers.stop().await;
        cluster.start_all();
        cluster.ready().await;
        // Allocations of this round, read from one of the members.
        let found = given_since(&cluster.at(round % 3), since).await;
        held(&ledger).check(&found, since + 1);
        since = found.iter().map(|allocation| allocation.id).max().unwrap_or(since);
    }
    holds_on_every_member(&cluster, &ledger).await;
    println!("{rounds} times all were killed; {} acknowledged", held(&ledger).acknowledged());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_one_killed_stops_nothing_and_loses_nothing() {
    let rounds = many(15, 4);
    let mut random = Random::new();
    let mut cluster = restless().all_up().await;
    make_pools(&cluster.ask()).await;
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let mut writers = Writers::start(WRITERS, 0, &cluster.urls(), &ledger);
    for round in 0..rounds {
        writers.get_on(random.between(20, 200)).await;
        // The leader at least every other time.
        let victim = if round % 2 == 0 { cluster.leader().await } else { random.between(0, 3) };
        cluster.members[victim].kill();
        // The two that are left go on, and it catches up, by entries or by a snapshot.
        writers.get_on(random.between(100, 600)).await;
        cluster.start(victim);
        cluster.ready().await;
    }
    writers.stop().await;
    holds_on_every_member(&cluster, &ledger).await;
    println!("{rounds} times one was killed; {} acknowledged", held(&ledger).acknowledged());
}

/// Every member has everything that was acknowledged, and all have the same; how they show it.
pub(crate) async fn holds_on_every_member(cluster: &Cluster, ledger: &Mutex<Ledger>) -> Shown {
    for at in 0..3 {
        let found = allocations(&cluster.at(at)).await;
        held(ledger).check(&found, 0);
    }
    let shown = cluster.settled().await;
    let found = allocations(&cluster.ask()).await;
    assert_eq!(shown.addresses.allocated, u64::try_from(found.len()).unwrap());
    shown
}

/// Allocations with greater ids, which are younger ones.
async fn given_since(client: &Client, id: u64) -> Vec<Allocation> {
    let mut found = allocations(client).await;
    found.retain(|allocation| allocation.id > id);
    found
}
