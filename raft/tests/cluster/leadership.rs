//! Leaderships within one term: each ends without a majority, and the next begins with its own entry.

use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

use ipam_api::limits::LOG_TIME_TICK_MS_MAX;
use ipam_machine::{Action, Command};
use ipam_raft::node::{Node, ProposeError};

use crate::harness::{Cluster, LONG, command, eventually, has};

/// Silence of the majority that log time must not count.
const SILENCE_MS: u64 = 3_000;

/// The number of a member's leadership, once it leads.
async fn begins(node: &Node) -> u64 {
    let mut leadership = node.leadership();
    let number = *leadership.wait_for(Option::is_some).await.unwrap();
    number.unwrap()
}

/// The number of a member's present leadership, if it leads.
fn present(node: &Node) -> Option<u64> {
    *node.leadership().borrow()
}

async fn as_leader(node: &Node, leadership: u64, name: &str) -> Result<(), ProposeError> {
    let outcome = node.propose_as_leader(leadership, command(name), Instant::now() + LONG).await;
    outcome.map(|(outcome, _)| drop(outcome.unwrap()))
}

/// Connects all members with each other, or cuts all links.
fn link_all(cluster: &Cluster, whole: bool) {
    for (one, other) in [(0, 1), (1, 2), (2, 0)] {
        cluster.link(one, other, whole);
        cluster.link(other, one, whole);
    }
}

/// Isolates all members, with an entry that only the leader has, so no other can win an election. Returns the
/// leader with the number of the leadership that this ends, and the log time at which the silence begins.
async fn lose_the_majority(cluster: &Cluster) -> (usize, u64, u64) {
    loop {
        let leader = cluster.leader().await;
        let node = cluster.node(leader);
        let Some(number) = present(node) else { continue };
        link_all(cluster, false);
        let log_time_ms = node.log_time_ms();
        let lonely = node.propose(command("lonely"), Instant::now() + Duration::from_millis(300)).await;
        if let Some(log_time_ms) = log_time_ms
            && lonely == Err(ProposeError::DeadlineExceeded { maybe_applied: true })
        {
            return (leader, number, log_time_ms);
        }
        link_all(cluster, true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_term_has_another_leadership_after_a_silence_of_the_majority() {
    let cluster = Cluster::quick(3).linked().await.started().await;
    let leader = cluster.leader().await;
    cluster.propose_through(leader, "before").await;
    let mut attempts = 0;
    let (node, second, state) = loop {
        attempts += 1;
        assert!(attempts <= 5, "another leadership comes in between each time");
        let (leader, first, log_time_ms) = lose_the_majority(&cluster).await;
        let node = cluster.node(leader);
        let term = node.status().term;
        eventually("the leadership ends", async || node.leadership().borrow().is_none()).await;
        assert_eq!(node.log_time_ms(), None, "log time stands still");
        assert_eq!(as_leader(node, first, "after-its-end").await, Err(ProposeError::NoLeader));
        eventually("the majority is silent for long", async || node.stale().1 > SILENCE_MS).await;
        link_all(&cluster, true);
        eventually("a leadership begins", async || cluster.nodes().any(|(_, node)| present(node).is_some()))
            .await;
        // The entry was in flight when the links were cut, so a member that has it may win.
        let (Some(second), Some(now_ms)) = (present(node), node.log_time_ms()) else { continue };
        assert!(second > first, "{second} after {first}");
        let passed_ms = now_ms.saturating_sub(log_time_ms);
        assert!(passed_ms < SILENCE_MS, "log time counted the silence: {passed_ms} ms");
        assert_eq!(as_leader(node, first, "of-the-first").await, Err(ProposeError::NoLeader));
        // On a busy machine the majority may be silent again.
        match as_leader(node, second, "of-the-second").await {
            Ok(()) => {}
            Err(ProposeError::NoLeader | ProposeError::Unknown { .. }) => continue,
            Err(error) => panic!("{error}"),
        }
        cluster.propose_through(leader, "of-any").await;
        let state = node.stale().0;
        if node.status().term == term && present(node) == Some(second) {
            break (node, second, state);
        }
    };
    assert!(!has(&state, "after-its-end") && !has(&state, "of-the-first"));
    assert!(has(&state, "of-the-second") && has(&state, "of-any"));
    assert_eq!(state.leadership(), second);
    assert!(node.metrics().leaderships_without_quorum > 0);
    cluster.settled().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_time_advances_where_nothing_is_proposed() {
    let cluster = Cluster::up(1).await;
    let node = cluster.node(0);
    begins(node).await;
    let (idle, begun) = (node.stale().0.log_time_ms(), Instant::now());
    // Longer than two ticks may be. No request needs log time meanwhile, which would advance it.
    eventually("time passes", async || begun.elapsed() > Duration::from_secs(3)).await;
    assert_eq!(node.stale().0.log_time_ms(), idle, "there was no entry");
    let expire = Command { action: Action::Expire, ..command("expire") };
    node.propose(expire, Instant::now() + LONG).await.unwrap().unwrap();
    let passed_ms = node.stale().0.log_time_ms() - idle;
    assert!(passed_ms > 2 * LOG_TIME_TICK_MS_MAX, "only {passed_ms} ms of log time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_for_a_leader_sleeps_meanwhile() {
    let cluster = Cluster::quick(3).linked().await.started().await;
    let node = cluster.node(cluster.follower().await);
    link_all(&cluster, false);
    let mut proposal = pin!(node.propose(command("waiting"), Instant::now() + Duration::from_millis(500)));
    let mut polls = 0;
    let outcome = poll_fn(|context| {
        polls += 1;
        proposal.as_mut().poll(context)
    });
    outcome.await.unwrap_err();
    assert!(polls < 200, "{polls}");
}
