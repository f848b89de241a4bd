//! The transfer of leadership to another voter, without the silence of an election.

use std::cmp::Reverse;
use std::time::Duration;

use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, timeout_at};

use super::config::Timing;
use super::raft::{Leader, leader};
use super::running::Running;

/// Transfers leadership to the most complete suitable voter, and waits until it leads.
pub(super) async fn hand_over(
    running: &Running,
    timing: Timing,
    deadline: Instant,
    suits: impl Fn(u64) -> bool,
) {
    // A voter may need this long to detect the missing leader.
    let patience = Duration::from_millis(2 * timing.election_max_ms);
    for heir in heirs(running, timing).into_iter().filter(|heir| suits(*heir)) {
        if !matches!(leader(&running.raft), Leader::Me) || Instant::now() >= deadline {
            return;
        }
        transfer(running, heir, deadline.min(Instant::now() + patience)).await;
    }
}

/// Transfers leadership, and waits until another member leads; returns its id.
pub(super) async fn transfer(running: &Running, heir: u64, until: Instant) -> Option<u64> {
    let mut changes = running.raft.server_metrics();
    tracing::info!(heir, "handing leadership over");
    running.raft.trigger().transfer_leader(heir).await.ok()?;
    loop {
        if let Leader::Other(id, _) = leader(&running.raft) {
            tracing::info!(leader = id, "leadership was transferred");
            return Some(id);
        }
        if !matches!(timeout_at(until, changes.changed()).await, Ok(Ok(()))) {
            return None;
        }
    }
}

/// Other voters, the best one first: recently heard, then with the longest log.
fn heirs(running: &Running, timing: Timing) -> Vec<u64> {
    let metrics = running.raft.metrics();
    let metrics = metrics.borrow_watched();
    let recently = Duration::from_millis(timing.election_max_ms);
    let others = running.voters().into_iter().filter(|id| *id != running.me.member_id);
    let mut heirs: Vec<_> = others
        .map(|id| {
            let seen = metrics.heartbeat.as_ref().and_then(|heartbeat| heartbeat.get(&id).copied().flatten());
            let alive = seen.is_some_and(|seen| seen.into_inner().elapsed() < recently);
            let matched = metrics.replication.as_ref().and_then(|replication| *replication.get(&id)?);
            (Reverse((alive, matched)), id)
        })
        .collect();
    heirs.sort_unstable();
    heirs.into_iter().map(|(_, id)| id).collect()
}
