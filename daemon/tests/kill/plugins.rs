//! Two hundred plugins at once, and a leader that is killed in the middle.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ipam_api::resource::{Endpoint, EndpointStatus, Resource};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::many;
use crate::support::ask::{list, make_pools};
use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::{Cluster, until};

const PLUGINS: usize = 200;
/// Number of concurrent runs.
const AT_ONCE: usize = 32;
const NODES: usize = 5;
/// Number of successes after which the leader is killed, and again until it restarts.
const KILL_AFTER: usize = 60;
const RESTART_AFTER: usize = 140;

/// All plugins of a round, by container.
struct Round {
    number: usize,
    urls: Vec<String>,
}

impl Round {
    fn plugin(&self, verb: &'static str, at: usize) -> Plugin {
        let mut urls = self.urls.clone();
        let first = at % urls.len();
        urls.rotate_left(first);
        let conf = network(&urls, &format!("node-{}", at % NODES), &["web", "web6"]);
        Plugin::new(verb, &self.container(at), &conf)
    }

    fn container(&self, at: usize) -> String {
        format!("c{}-{at}", self.number)
    }

    /// Starts them all; `done` counts the successful ones.
    fn start(&self, verb: &'static str, done: &Arc<AtomicUsize>) -> JoinSet<(usize, Outcome)> {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut runs = JoinSet::new();
        for at in 0..PLUGINS {
            let (plugin, room, done) = (self.plugin(verb, at), Arc::clone(&room), Arc::clone(done));
            runs.spawn(async move {
                let _place = room.acquire().await.unwrap();
                let outcome = plugin.run().await;
                done.fetch_add(usize::from(outcome.is_success()), Ordering::Relaxed);
                (at, outcome)
            });
        }
        runs
    }
}

/// Waits until this many have succeeded, or all have ended.
async fn reached(done: &AtomicUsize, count: usize) {
    until(&format!("{count} plugins succeed"), async || {
        let done = done.load(Ordering::Relaxed);
        if done >= count { Ok(()) } else { Err(done.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_adds_at_once_survive_the_loss_of_the_leader() {
    let mut cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    for number in 0..many(5, 2) {
        let round = Round { number, urls: cluster.urls() };
        let (begun, done) = (Instant::now(), Arc::default());
        let mut runs = round.start("ADD", &done);
        reached(&done, KILL_AFTER).await;
        let leader = cluster.leader().await;
        cluster.members[leader].kill();
        reached(&done, RESTART_AFTER).await;
        cluster.start(leader);
        let mut given: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        let mut failed = Vec::new();
        while let Some(run) = runs.join_next().await {
            let (at, outcome) = run.unwrap();
            match outcome.code {
                Some(0) => drop(given.insert(round.container(at), outcome.addresses())),
                // "Try again": no other failure is permitted here.
                _ => drop((outcome.fails(11), failed.push(at))),
            }
        }
        let took = begun.elapsed();
        cluster.ready().await;
        println!("round {number}: {} of {PLUGINS} at once in {took:?}, {} again", given.len(), failed.len());
        // A failed run is repeated twice and gets the same answer.
        for at in failed {
            let first = round.plugin("ADD", at).run().await;
            assert_eq!(round.plugin("ADD", at).run().await.succeeds(), &first);
            given.insert(round.container(at), first.addresses());
        }
        is_whole(&cluster, &given).await;
        let deleted = Arc::default();
        let mut runs = round.start("DEL", &deleted);
        while let Some(run) = runs.join_next().await {
            run.unwrap().1.succeeds();
        }
        assert_eq!(cluster.settled().await.addresses.allocated, 0);
    }
}

/// Checks that every member has exactly the allocations in `given`.
async fn is_whole(cluster: &Cluster, given: &BTreeMap<String, Vec<IpAddr>>) {
    assert_eq!(given.len(), PLUGINS);
    let mut all = BTreeSet::new();
    for (container, addresses) in given {
        let families: Vec<bool> = addresses.iter().map(IpAddr::is_ipv4).collect();
        assert_eq!(families, [true, false], "{container}: {addresses:?}");
        assert!(addresses.iter().all(|address| all.insert(*address)), "{addresses:?} is given twice");
    }
    for at in 0..3 {
        let endpoints: Vec<Resource<Endpoint, EndpointStatus>> = list(&cluster.at(at), "/v1/endpoints").await;
        let mut held: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        for interface in endpoints.into_iter().flat_map(|endpoint| endpoint.status.interfaces) {
            let container = interface.attachment.unwrap().container_id.to_string();
            let addresses = interface.addresses.iter().map(|given| given.address.addr()).collect();
            assert!(held.insert(container, addresses).is_none());
        }
        assert_eq!(&held, given, "as member {at} knows it");
    }
    cluster.settled().await;
}
