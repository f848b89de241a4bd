//! Elections on disks whose fsync takes as long as the election timeout.

use crate::harness::{Cluster, eventually, leads, propose};

/// Longer than the longest configured election timeout of these clusters.
const FLUSH_MS: u64 = 550;
/// Number of leaders that are lost.
const ROUNDS: usize = 2;
/// Terms that a lost leader may cost: one on a quiet machine. A rival that overtakes a campaign takes one
/// more, and a busy machine has more of them. Without the time for votes the terms have no end.
const TERMS_MAX: u64 = 8;

/// A disk that needs longer than the election timeout for a vote costs time, and no further terms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_leader_costs_few_elections_on_slow_disks() {
    let mut cluster = Cluster::quick(3).started().await;
    for round in 0..ROUNDS {
        let leader = cluster.leader().await;
        cluster.propose(leader, &format!("before-{round}")).await;
        let before = cluster.node(leader).status().term;
        cluster.nodes().for_each(|(_, node)| node.delay_flushes(FLUSH_MS));
        let elections =
            |cluster: &Cluster| cluster.nodes().map(|(_, node)| node.metrics().elections).sum::<u64>();
        cluster.crash(leader);
        let elections_before = elections(&cluster);
        eventually("a leader works", async || {
            let found = cluster.nodes().find(|(_, node)| leads(node));
            match found {
                Some((_, node)) => propose(node, &format!("after-{round}")).await.is_ok(),
                None => false,
            }
        })
        .await;
        let terms = cluster.nodes().map(|(_, node)| node.status().term).max().unwrap() - before;
        let elections = elections(&cluster) - elections_before;
        assert!(terms <= TERMS_MAX, "{terms} terms for one leader");
        // A campaign that is repeated names the same term, and finds the votes on disk.
        assert!(elections <= 2 * TERMS_MAX, "{elections} campaigns for one leader");
        cluster.nodes().for_each(|(_, node)| node.delay_flushes(0));
        cluster.start(leader).await;
    }
    cluster.settled().await;
}

/// The first election of openraft exceeds the election timeout. A concurrent campaign must not leave a leader
/// that no voter follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_founded_on_slow_disks() {
    for _ in 0..ROUNDS {
        let mut cluster = Cluster::quick(3);
        for at in 0..3 {
            cluster.start(at).await;
            cluster.node(at).delay_flushes(FLUSH_MS);
        }
        let leader = cluster.leader().await;
        cluster.propose_through(leader, "first").await;
        assert!(cluster.node(leader).status().term <= TERMS_MAX);
    }
}

/// The timeout in use follows the disk, up and down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_election_timeout_follows_the_disk() {
    let cluster = Cluster::quick(3).started().await;
    let leader = cluster.leader().await;
    let follower = cluster.follower_of(leader);
    let timeout_ms = || cluster.node(follower).metrics().election_timeout_ms;
    // The founding of a cluster on a busy machine may have slow flushes.
    eventually("the timeout is the configured one", async || {
        cluster.propose_through(leader, "before").await;
        timeout_ms() == 300
    })
    .await;
    cluster.node(follower).delay_flushes(100);
    eventually("the timeout rises", async || {
        cluster.propose_through(leader, "slow").await;
        timeout_ms() >= 400
    })
    .await;
    cluster.node(follower).delay_flushes(0);
    eventually("the timeout is the configured one again", async || {
        cluster.propose_through(leader, "fast").await;
        timeout_ms() == 300
    })
    .await;
}
