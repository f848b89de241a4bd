//! Leaders whose connections end: the voters of a lost leader don't wait for its lease.

use std::time::Instant;

use crate::harness::{Cluster, LEASE, eventually};

/// Leaders that are lost until one is replaced early: a busy machine can delay an election.
const ROUNDS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_process_ends_is_replaced_during_its_lease() {
    let mut cluster = Cluster::patient(3).started().await;
    for round in 0..ROUNDS {
        let leader = cluster.leader().await;
        cluster.propose(leader, &format!("before-{round}")).await;
        let before = cluster.node(leader).status().term;
        let begun = Instant::now();
        cluster.crash(leader);
        let at = (leader + 1) % 3;
        cluster.propose_through(at, &format!("after-{round}")).await;
        let early = begun.elapsed() < LEASE;
        assert!(cluster.node(at).status().term > before);
        cluster.start(leader).await;
        cluster.settled().await;
        if early {
            return;
        }
    }
    panic!("the voters waited for the lease in each of {ROUNDS} rounds");
}

/// The other voter still hears the leader, so it grants no vote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_alone_loses_its_connections_changes_nothing() {
    let cluster = Cluster::patient(3).linked().await.started().await;
    let (leader, follower) = (cluster.leader().await, cluster.follower().await);
    let before = cluster.node(leader).status().term;
    cluster.link(leader, follower, false);
    // It campaigns long before.
    eventually("it misses its leader", async || cluster.node(follower).stale().1 > 0).await;
    cluster.propose(leader, "meanwhile").await;
    cluster.link(leader, follower, true);
    cluster.settled().await;
    for (_, node) in cluster.nodes() {
        assert_eq!(node.status().term, before);
    }
}
