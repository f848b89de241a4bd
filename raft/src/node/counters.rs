//! Counters of a member.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::durations::{DurationCounts, Durations};
use crate::retry_after::RetryAfter;
use crate::store::StoreCounters;
use crate::transport::{Busy, Declined};

/// Declares the node's counters, and the struct in which they are read, with values from other sources.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of this member since the start of the process.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct NodeMetrics {
            $($(#[$doc])* pub $name: u64,)*
            /// Time from proposing an entry to its outcome.
            pub commit: DurationCounts,
            /// Time that proposals waited in the queue for an entry.
            pub queued: DurationCounts,
            /// Time from handing a group of log entries to the disk until they are on disk.
            pub fsync: DurationCounts,
            /// Time to apply the entries between two publications of the state.
            pub apply: DurationCounts,
            /// Starts at which the rows were set aside and rebuilt.
            pub rows_rebuilt: u64,
            /// Snapshots that this member made.
            pub snapshots_built: u64,
            /// Snapshots that were due and could not be built from the state; the log is kept in that case.
            pub snapshots_failed: u64,
        }

        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64,)*
            commit: Durations,
            queued: Durations,
            retry_after: RetryAfter,
            pub(super) store: Arc<StoreCounters>,
        }

        impl Counters {
            pub(super) fn read(&self) -> NodeMetrics {
                NodeMetrics {
                    $($name: self.$name.load(Relaxed),)*
                    commit: self.commit.read(),
                    queued: self.queued.read(),
                    fsync: self.store.fsync.read(),
                    apply: self.store.apply.read(),
                    rows_rebuilt: self.store.rows_rebuilt.load(Relaxed),
                    snapshots_built: self.store.snapshots_built.load(Relaxed),
                    snapshots_failed: self.store.snapshots_failed.load(Relaxed),
                }
            }
        }
    };
}

counters! {
    /// Proposals that wait on this member for their outcome, forwarded and received ones included.
    proposals_waiting,
    /// Proposals passed on to the leader.
    proposals_forwarded,
    /// Proposals that ended without an outcome.
    proposals_failed,
    /// Proposals refused because their requester held its share of the places.
    proposals_over_share,
    /// Proposals refused because the queue would not have served them in time.
    proposals_too_late,
    /// Proposals that left the queue before the log: their deadline passed, or their caller gave up.
    /// Proposals that expire while an entry is formed are not counted.
    proposals_abandoned,
    /// Log entries proposed by this member as the leader.
    batches,
    /// Commands in the proposed entries.
    commands,
    /// Bytes of the proposed entries.
    batch_bytes,
    /// Linearizable reads.
    reads,
    /// Read-index rounds, each shared by concurrent linearizable reads.
    read_rounds,
    /// Leaderships that this member began.
    leaderships,
    /// Leaderships of this member that ended because no majority acknowledged it.
    leaderships_without_quorum,
    /// Campaigns for which a majority would have voted.
    elections,
    /// Campaigns that made this member the leader.
    elections_won,
    /// Current election timeout in milliseconds, within which votes must reach the disks.
    election_timeout_ms,
    /// Changes of the leader that this member observed.
    leader_changes,
    /// Snapshots that this member got from a leader.
    snapshots_installed,
    /// Comparisons in which a majority of the members had another state than this one.
    divergences,
    /// Rebuilds of the state while this member ran.
    states_rebuilt,
}

/// Waiting proposal, for the lifetime of this value.
pub(super) struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// Counters at zero, besides those of the store.
    pub(super) fn new(store: Arc<StoreCounters>) -> Self {
        Self { store, ..Self::default() }
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a waiting proposal.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.proposals_waiting.fetch_add(1, Relaxed);
        Waiting(&self.proposals_waiting)
    }

    /// Counts a refusal, and returns it with a recommended pause of at least `base`.
    pub(super) fn refuse(&self, why: Busy, base: Duration) -> Declined {
        Self::add(match why {
            Busy::Share => &self.proposals_over_share,
            Busy::Wait => &self.proposals_too_late,
        });
        Declined::Busy { why, retry_after_ms: self.retry_after.spread_ms(base) }
    }

    pub(super) fn proposed(&self, commands: usize, bytes: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.commands.fetch_add(commands as u64, Relaxed);
        self.batch_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn queued(&self, waited: Duration) {
        self.queued.observe(waited);
    }

    pub(super) fn committed(&self, after: Duration) {
        self.commit.observe(after);
    }
}
