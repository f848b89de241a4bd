//! More proposals than slow disks can take: refusals with a pause, and fairness on every path to the leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ipam_api::limits::{RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN};
use ipam_machine::{Action, Command};
use ipam_raft::node::{Busy, Node, ProposeError};

use crate::harness::{Cluster, LONG, command, eventually};

/// A slow flush, far below the election timeout.
const FLUSH_MS: u64 = 100;
/// Many commands, but less than one requester's share of the places.
const FLOOD: usize = 5_000;

/// Command about an endpoint of a namespace, all of one principal. There is no such endpoint.
fn about(namespace: &str, number: usize) -> Command {
    let key = format!("pod/{namespace}/web-{number}").parse().unwrap();
    Command { action: Action::ReleaseEndpoint { key }, ..command("about") }
}

async fn propose(node: &Node, command: Command) -> Result<(), ProposeError> {
    node.propose(command, Instant::now() + LONG).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_one_namespace_is_refused_and_another_one_is_served_before_it() {
    let cluster = Cluster::up(3).await;
    let leader = cluster.leader().await;
    let follower = cluster.follower_of(leader);
    cluster.nodes().for_each(|(_, node)| node.delay_flushes(FLUSH_MS));
    let served = Arc::new(AtomicUsize::new(0));
    let flood: Vec<_> = (0..FLOOD)
        .map(|number| {
            let (node, served) = (cluster.node(leader).clone(), Arc::clone(&served));
            tokio::spawn(async move {
                let outcome = propose(&node, about("flood", number)).await;
                served.fetch_add(1, Relaxed);
                outcome
            })
        })
        .collect();
    // The leader knows the drain rate after a few entries.
    eventually("the flood is refused", async || {
        let budget = Duration::from_millis(50);
        let refused = cluster.node(leader).propose(about("flood", FLOOD), Instant::now() + budget).await;
        match refused.err() {
            Some(ProposeError::Overloaded { why: Busy::Wait, retry_after_ms }) => {
                assert!((RETRY_AFTER_MS_MIN..=RETRY_AFTER_MS_MAX).contains(&retry_after_ms));
                true
            }
            _ => false,
        }
    })
    .await;
    // A follower forwards the command of the other namespace. A machine that stalls has a low rate at first.
    eventually("the other namespace is served", async || {
        match propose(cluster.node(follower), about("quiet", 0)).await {
            Ok(()) => true,
            Err(ProposeError::Overloaded { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    })
    .await;
    let before = served.load(Relaxed);
    assert!(before < FLOOD, "it was served behind the whole flood");
    let metrics = cluster.node(leader).metrics();
    assert!(metrics.proposals_too_late > 0 && metrics.proposals_over_share == 0, "{metrics:?}");
    cluster.nodes().for_each(|(_, node)| node.delay_flushes(0));
    // A machine that stalls refuses a part of the flood.
    for one in flood {
        let outcome = one.await.unwrap();
        assert!(
            matches!(outcome, Ok(()) | Err(ProposeError::Overloaded { why: Busy::Wait, .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(cluster.node(leader).metrics().proposals_waiting, 0);
    cluster.settled().await;
}
