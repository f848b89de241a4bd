//! Stopping without anybody noticing: the office is handed over first.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, sleep, timeout_at};

use super::inner::{Inner, held};
use super::running::{Leader, Running, leader};
use crate::store::Closer;

/// How often to look whether what runs is done.
const LOOK: Duration = Duration::from_millis(5);

/// Stops a member in good order, as far as the time allows.
pub(super) async fn leave(inner: &Inner, closer: Option<Closer>, deadline: Instant) {
    inner.stopping.send_replace(true);
    // Half of the time for what runs, the other half for handing over.
    let begun = Instant::now();
    let drained = begun + deadline.saturating_duration_since(begun) / 2;
    while inner.counters.proposals_waiting.load(Relaxed) > 0 && Instant::now() < drained {
        sleep(LOOK).await;
    }
    let running = inner.running();
    if let Some(running) = &running {
        hand_over(inner, running, deadline, |_| true).await;
    }
    inner.tasks.end().await;
    inner.leads.send_replace(None);
    inner.running.send_replace(None);
    if let Some(running) = running {
        running.peers.close();
        if let Err(error) = running.raft.shutdown().await {
            tracing::warn!(%error, "raft didn't stop in good order");
        }
    }
    if let Some(closer) = closer {
        match timeout_at(deadline, closer.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store didn't close in good order; the next start will take longer");
            }
            Err(_) => tracing::warn!("the disk took too long to close; the next start will take longer"),
        }
    }
    held(&inner.lock).take();
}

/// Gives the office to the voter that lacks least of those that suit, and waits until somebody has it.
pub(super) async fn hand_over(
    inner: &Inner,
    running: &Running,
    deadline: Instant,
    suits: impl Fn(u64) -> bool,
) {
    // As long as a voter may need to find out that nobody leads.
    let patience = Duration::from_millis(2 * inner.timing.election_max_ms);
    let mut changes = running.raft.server_metrics();
    for heir in heirs(inner, running).into_iter().filter(|heir| suits(*heir)) {
        if !matches!(leader(&running.raft), Leader::Me) || Instant::now() >= deadline {
            return;
        }
        tracing::info!(heir, "handing leadership over");
        if running.raft.trigger().transfer_leader(heir).await.is_err() {
            return;
        }
        let until = deadline.min(Instant::now() + patience);
        while !matches!(leader(&running.raft), Leader::Other(..)) {
            if !matches!(timeout_at(until, changes.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        if let Leader::Other(id, _) = leader(&running.raft) {
            tracing::info!(leader = id, "leadership was handed over");
        }
    }
}

/// The other voters, the best one first: heard of lately, then whose log is longest.
fn heirs(inner: &Inner, running: &Running) -> Vec<u64> {
    let metrics = running.raft.metrics();
    let metrics = metrics.borrow_watched();
    let recently = Duration::from_millis(inner.timing.election_max_ms);
    let mut heirs: Vec<_> = metrics
        .membership_config
        .membership()
        .voter_ids()
        .filter(|id| *id != running.me.member_id)
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
