//! The leadership of this member, and the last sign of a leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use openraft::async_runtime::watch::WatchReceiver;
use openraft::{Instant as _, ServerState};
use tokio::sync::watch;
use tokio::time::Instant;

use super::lifecycle::Lifecycle;
use super::running::Running;
use crate::durations::as_ms;

/// Knowledge of this member about leaders, itself included.
pub(super) struct Leadership {
    /// Number of this member's leadership, while it leads.
    pub(super) leads: watch::Sender<Option<u64>>,
    election_max_ms: u64,
    started: Instant,
    /// The last sign of a leader, in milliseconds since the start; 0 before the first.
    heard_ms: AtomicU64,
}

impl Leadership {
    /// Creates the record of a member that has heard no leader yet.
    pub(super) fn new(election_max_ms: u64) -> Self {
        let (started, heard_ms) = (Instant::now(), AtomicU64::new(0));
        Self { leads: watch::Sender::new(None), election_max_ms, started, heard_ms }
    }

    /// Publishes the number of this member's leadership.
    pub(super) async fn follow(self: Arc<Self>, lifecycle: Arc<Lifecycle>) {
        let mut running = lifecycle.running.subscribe();
        let own_leadership = match running.wait_for(Option::is_some).await {
            Ok(running) => running.as_ref().map(|running| running.own_leadership.clone()),
            Err(_) => return,
        };
        let Some(mut own_leadership) = own_leadership else { return };
        loop {
            let number =
                own_leadership.borrow_and_update().as_ref().map(|held_leadership| held_leadership.number);
            self.leads.send_replace(number);
            if own_leadership.changed().await.is_err() {
                self.leads.send_replace(None);
                return;
            }
        }
    }

    pub(super) fn note_leader_heard(&self) {
        self.heard_ms.store(self.age_ms().max(1), Relaxed);
    }

    /// Milliseconds since the start.
    fn age_ms(&self) -> u64 {
        as_ms(self.started.elapsed())
    }

    /// The time since this member last knew a working leader; 0 if it knows one now.
    pub(super) fn stale_ms(&self, running: Option<&Running>) -> u64 {
        match running.and_then(|running| self.silent_ms(running)) {
            // No leader was heard since the start.
            None => self.age_ms().max(1),
            Some(silent_ms) if silent_ms < self.election_max_ms => 0,
            Some(silent_ms) => silent_ms,
        }
    }

    /// Time since a working leader was last heard, in ms; none if there was none since the start. The stored
    /// vote doesn't count: it names an earlier leader.
    fn silent_ms(&self, running: &Running) -> Option<u64> {
        let heard_at_ms = self.heard_ms.load(Relaxed);
        let heard_ms = (heard_at_ms > 0).then(|| self.age_ms().saturating_sub(heard_at_ms));
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.state != ServerState::Leader {
            return heard_ms;
        }
        if metrics.membership_config.membership().voter_ids().count() == 1 {
            return Some(0);
        }
        metrics.last_quorum_acked.map(|when| as_ms(when.into_inner().elapsed())).or(heard_ms)
    }
}
