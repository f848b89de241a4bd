//! What a member counts about itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ipam_api::limits::PROPOSALS_WAITING_MAX;

use crate::durations::{DurationCounts, Durations};
use crate::store::StoreCounters;

/// Counters since the start of the process, as they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeMetrics {
    /// Proposals that wait for their outcome here: those passed on to the leader, and those that it got passed
    /// on, included.
    pub proposals_waiting: u64,
    /// Proposals passed on to the leader.
    pub proposals_forwarded: u64,
    /// Proposals without an outcome.
    pub proposals_failed: u64,
    /// Log entries proposed by this member as the leader.
    pub batches: u64,
    /// Commands in them.
    pub commands: u64,
    /// Bytes of them.
    pub batch_bytes: u64,
    /// Time from proposing an entry to its outcome.
    pub commit: DurationCounts,
    /// Time from handing a group of entries to the disk until it is on it.
    pub fsync: DurationCounts,
    /// Time to apply the entries that come together.
    pub apply: DurationCounts,
    /// How often rows were put aside at a start and made afresh.
    pub rows_rebuilt: u64,
    /// Linearizable reads.
    pub reads: u64,
    /// Rounds that they shared.
    pub read_rounds: u64,
    /// How often this member began to lead.
    pub leaderships: u64,
    /// Leaderships of this member that ended because no majority acknowledged it.
    pub leaderships_without_quorum: u64,
    /// Campaigns for which a majority would have voted.
    pub elections: u64,
    /// Campaigns that made this member the leader.
    pub elections_won: u64,
    /// The time that votes have to reach the disks.
    pub election_timeout_ms: u64,
    /// How often this member learned of another leader than before.
    pub leader_changes: u64,
    /// Snapshots that this member made.
    pub snapshots_built: u64,
    /// How often a snapshot was due and couldn't be made of the state; the log is kept then.
    pub snapshots_failed: u64,
    /// Snapshots that this member got from a leader.
    pub snapshots_installed: u64,
    /// How often a majority of the members had another state than this one.
    pub divergences: u64,
    /// How often this member has made its state again while it ran.
    pub states_rebuilt: u64,
}

/// A proposal that waits, for as long as this lives.
pub(super) struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) proposals_waiting: AtomicU64,
    pub(super) proposals_forwarded: AtomicU64,
    pub(super) proposals_failed: AtomicU64,
    batches: AtomicU64,
    commands: AtomicU64,
    batch_bytes: AtomicU64,
    commit: Durations,
    pub(super) store: Arc<StoreCounters>,
    pub(super) reads: AtomicU64,
    pub(super) read_rounds: AtomicU64,
    pub(super) leaderships: AtomicU64,
    pub(super) leaderships_without_quorum: AtomicU64,
    pub(super) elections: AtomicU64,
    pub(super) elections_won: AtomicU64,
    pub(super) election_timeout_ms: AtomicU64,
    pub(super) leader_changes: AtomicU64,
    pub(super) snapshots_installed: AtomicU64,
    pub(super) divergences: AtomicU64,
    pub(super) states_rebuilt: AtomicU64,
}

impl Counters {
    /// At zero, beside those of the store.
    pub(super) fn new(store: Arc<StoreCounters>) -> Self {
        Self { store, ..Self::default() }
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Counts one more proposal that waits; none when there are too many already.
    pub(super) fn wait(&self) -> Option<Waiting<'_>> {
        let before = self.proposals_waiting.fetch_add(1, Relaxed);
        let waiting = Waiting(&self.proposals_waiting);
        (before < PROPOSALS_WAITING_MAX as u64).then_some(waiting)
    }

    pub(super) fn proposed(&self, commands: usize, bytes: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.commands.fetch_add(commands as u64, Relaxed);
        self.batch_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn committed(&self, after: Duration) {
        self.commit.observe(after);
    }

    pub(super) fn read(&self) -> NodeMetrics {
        NodeMetrics {
            proposals_waiting: self.proposals_waiting.load(Relaxed),
            proposals_forwarded: self.proposals_forwarded.load(Relaxed),
            proposals_failed: self.proposals_failed.load(Relaxed),
            batches: self.batches.load(Relaxed),
            commands: self.commands.load(Relaxed),
            batch_bytes: self.batch_bytes.load(Relaxed),
            commit: self.commit.read(),
            fsync: self.store.fsync.read(),
            apply: self.store.apply.read(),
            rows_rebuilt: self.store.rows_rebuilt.load(Relaxed),
            reads: self.reads.load(Relaxed),
            read_rounds: self.read_rounds.load(Relaxed),
            leaderships: self.leaderships.load(Relaxed),
            leaderships_without_quorum: self.leaderships_without_quorum.load(Relaxed),
            elections: self.elections.load(Relaxed),
            elections_won: self.elections_won.load(Relaxed),
            election_timeout_ms: self.election_timeout_ms.load(Relaxed),
            leader_changes: self.leader_changes.load(Relaxed),
            snapshots_built: self.store.snapshots_built.load(Relaxed),
            snapshots_failed: self.store.snapshots_failed.load(Relaxed),
            snapshots_installed: self.snapshots_installed.load(Relaxed),
            divergences: self.divergences.load(Relaxed),
            states_rebuilt: self.states_rebuilt.load(Relaxed),
        }
    }
}
