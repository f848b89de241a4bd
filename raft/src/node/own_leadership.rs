//! Leaderships of this member, and the log time that each measures.
//!
//! A leadership begins with an entry of its own, whose log index is its number, and ends with the Raft
//! leadership or as soon as no majority has acknowledged the leader for one election timeout: openraft's
//! leader doesn't step down then, and the members that it doesn't reach may follow another one. When the
//! majority is back, another leadership begins, from the state's log time: the time in between doesn't count.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::limits::{ELECTION_TIMEOUT_MS_MAX, LOG_TIME_TICK_MS_MAX};
use ipam_api::time::Timestamp;
use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::type_config::alias::CommittedLeaderIdOf;
use openraft::vote::RaftLeaderId;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::config::Timing;
use super::counters::Counters;
use super::raft::RaftHandle;
use crate::store::SharedState;
use crate::sync::held;
use crate::types::{Recipient, Types};
use ipam_machine::SeededBug;
use ipam_machine::batch::Batch;

/// Pause before the next attempt to begin a leadership.
const RETRY: Duration = Duration::from_millis(10);
/// Factor of the first entry's commit time: a majority that is silent for longer ends the leadership. On a
/// follower, the answer to a heartbeat waits until earlier entries are on disk.
const SILENT_COMMITS: u32 = 4;
/// Interval at which log time advances without entries, and at which the majority is checked.
const TICK: Duration = Duration::from_millis(LOG_TIME_TICK_MS_MAX / 10);

/// One leadership of this member.
#[derive(Clone)]
pub(super) struct OwnLeadership {
    /// Number of the leadership; unique in the log.
    pub(super) number: u64,
    /// Raft's id of the leadership, under which alone its entries are appended.
    pub(super) leader_id: CommittedLeaderIdOf<Types>,
    clock: Arc<Mutex<LogClock>>,
    raft: RaftHandle,
    /// Election timeout, or longer if the disks of a majority are slow. After a silence of this length the
    /// others may elect a leader, and earlier if this member's connections closed (ADR 41).
    patience: Duration,
}

impl OwnLeadership {
    /// Returns true if a majority has acknowledged this leader within the last election timeout.
    pub(super) fn has_quorum(&self) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let mut voters = metrics.membership_config.membership().voter_ids();
        if voters.next() == Some(metrics.id) && voters.next().is_none() {
            return true;
        }
        metrics.last_quorum_acked.is_some_and(|when| when.into_inner().elapsed() <= self.patience)
    }

    /// Returns the log time at an instant, and lets log time advance to there.
    pub(super) fn log_time_ms(&self, now: Instant) -> u64 {
        held(&self.clock).advance(now)
    }
}

/// Log time of one leadership: continues the state's, by this process's monotonic clock. It advances in ticks
/// of at most [`LOG_TIME_TICK_MS_MAX`], so a stopped process or a suspended machine adds one tick.
#[derive(Debug)]
struct LogClock {
    log_time_ms: u64,
    measured: Instant,
}

impl LogClock {
    fn advance(&mut self, now: Instant) -> u64 {
        if SeededBug::WallClock.is_on() {
            self.log_time_ms = self.log_time_ms.max(Timestamp::now().0);
            return self.log_time_ms;
        }
        let passed_ms = now.saturating_duration_since(self.measured).as_millis();
        // Whole milliseconds: the rest counts with the next tick.
        if passed_ms > 0 {
            let tick_ms = u64::try_from(passed_ms).unwrap_or(u64::MAX).min(LOG_TIME_TICK_MS_MAX);
            self.log_time_ms = self.log_time_ms.saturating_add(tick_ms);
            self.measured = if passed_ms == u128::from(tick_ms) {
                self.measured + Duration::from_millis(tick_ms)
            } else {
                now
            };
        }
        self.log_time_ms
    }
}

/// Returns the leader id of the Raft leadership, if this member leads.
fn raft_leadership(metrics: &RaftServerMetrics<Types>) -> Option<CommittedLeaderIdOf<Types>> {
    let leader_id = metrics.vote.leader_id();
    let mine = metrics.vote.is_committed() && leader_id.node_id == metrics.id;
    mine.then(|| leader_id.to_committed())
}

/// Begins and ends the leaderships of this member.
pub(super) struct LeadershipDriver {
    pub(super) raft: RaftHandle,
    pub(super) timing: Timing,
    pub(super) state: SharedState,
    /// Publishes the present leadership.
    pub(super) own_leadership: watch::Sender<Option<OwnLeadership>>,
    pub(super) counters: Arc<Counters>,
}

impl LeadershipDriver {
    /// Follows Raft while it runs.
    pub(super) async fn follow(self) {
        let mut changes = self.raft.server_metrics();
        let mut ticks = interval(TICK);
        // After a pause one tick is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leader = None;
        loop {
            // Only the awaited channel is read; openraft's other channels may be ahead or behind.
            let (leads, known) = {
                let metrics = changes.borrow_and_update();
                (raft_leadership(&metrics), metrics.current_leader)
            };
            if known.is_some() && known != leader {
                leader = known;
                Counters::add(&self.counters.leader_changes);
            }
            self.end_what_ended(leads.as_ref());
            let begins = leads.filter(|_| self.own_leadership.borrow().is_none());
            tokio::select! {
                changed = changes.changed() => {
                    // Abandons an attempt to begin: Raft may have another leader, or have ended.
                    if changed.is_err() {
                        self.own_leadership.send_replace(None);
                        return;
                    }
                }
                () = self.begin_unless(begins) => {}
                _ = ticks.tick(), if begins.is_none() => {}
            }
        }
    }

    /// Ends the leadership if Raft has another leader or no majority; else lets its log time advance.
    fn end_what_ended(&self, leads: Option<&CommittedLeaderIdOf<Types>>) {
        let Some(held_leadership) = self.own_leadership.borrow().clone() else { return };
        if leads != Some(&held_leadership.leader_id) {
            tracing::info!(leadership = held_leadership.number, "this member no longer leads");
        } else if !held_leadership.has_quorum() {
            let patience = held_leadership.patience;
            tracing::warn!(
                leadership = held_leadership.number,
                ?patience,
                "no majority acknowledges this leader"
            );
            Counters::add(&self.counters.leaderships_without_quorum);
        } else {
            held_leadership.log_time_ms(Instant::now());
            return;
        }
        self.own_leadership.send_replace(None);
    }

    /// Begins a leadership, or waits for ever if there is none.
    async fn begin_unless(&self, leads: Option<CommittedLeaderIdOf<Types>>) {
        let Some(leader_id) = leads else { return std::future::pending().await };
        if !self.begin(leader_id).await {
            sleep(RETRY).await;
        }
    }

    /// Begins a leadership with an entry; once that is applied, everything before it is. Returns false if the
    /// attempt has to be repeated.
    async fn begin(&self, leader_id: CommittedLeaderIdOf<Types>) -> bool {
        let beginning = Batch::beginning(self.timing.lease_grace_ms, Timestamp::now().0);
        let Ok(batch) = beginning else { return false };
        let (tell, outcome) = oneshot::channel();
        // A missing receiver means that the member stops.
        let recipient = Recipient::new(move |outcome| drop(tell.send(outcome)));
        let begun = Instant::now();
        if self.raft.write(batch).with_leader(leader_id).responder(recipient).await.is_err() {
            return false;
        }
        let Ok(Ok(response)) = outcome.await else { return false };
        let (number, now) = (response.log_id.index, Instant::now());
        let log_time_ms = self.state.with(|state| state.log_time_ms());
        let clock = Arc::new(Mutex::new(LogClock { log_time_ms, measured: now }));
        let slow = now.duration_since(begun).saturating_mul(SILENT_COMMITS);
        let election = Duration::from_millis(self.timing.election_max_ms);
        let patience = election.max(slow.min(Duration::from_millis(ELECTION_TIMEOUT_MS_MAX)));
        self.own_leadership.send_replace(Some(OwnLeadership {
            number,
            leader_id,
            clock,
            raft: self.raft.clone(),
            patience,
        }));
        Counters::add(&self.counters.leaderships);
        tracing::info!(term = leader_id.term, leadership = number, log_time_ms, "this member leads");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_adds_one_tick_to_log_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut clock = LogClock { log_time_ms: 5_000, measured: start };
        assert_eq!(clock.advance(start), 5_000);
        assert_eq!(clock.advance(at(900)), 5_900);
        assert_eq!(clock.advance(at(61_000)), 5_900 + LOG_TIME_TICK_MS_MAX, "a minute counts as one tick");
        assert_eq!(clock.advance(at(61_200)), 5_900 + LOG_TIME_TICK_MS_MAX + 200, "and is not made up for");
        assert_eq!(clock.advance(at(61_100)), 5_900 + LOG_TIME_TICK_MS_MAX + 200, "it never goes back");
    }

    #[test]
    fn fractions_of_a_millisecond_are_not_lost() {
        let start = Instant::now();
        let mut clock = LogClock { log_time_ms: 0, measured: start };
        for half in 1..=10 {
            clock.advance(start + Duration::from_micros(500) * half);
        }
        assert_eq!(clock.log_time_ms, 5);
    }
}
