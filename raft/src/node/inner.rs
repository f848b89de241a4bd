//! The parts of a member, wired together. Each owns its fields; what needs one part gets only that part.

use std::sync::Arc;

use tokio::sync::Mutex as AsyncMutex;

use super::callers::Callers;
use super::counters::Counters;
use super::digests::Integrity;
use super::gate::Gate;
use super::leadership::Leadership;
use super::lifecycle::Lifecycle;
use super::places::Places;
use super::profile::Profile;
use super::snapshots::SnapshotPolicy;
use crate::store::{EntrySizes, Journal, LogStore, MachineStore, SharedState};
use crate::transport::Hello;

/// Parts that the start of raft consumes.
pub(super) struct RaftParts {
    pub(super) config: openraft::Config,
    pub(super) log: LogStore,
    pub(super) machine: MachineStore,
    pub(super) reach: EntrySizes,
    pub(super) snapshots: SnapshotPolicy,
}

/// A member without its handle.
pub(super) struct Inner {
    pub(super) profile: Profile,
    pub(super) lifecycle: Arc<Lifecycle>,
    pub(super) leadership: Arc<Leadership>,
    pub(super) integrity: Arc<Integrity>,
    pub(super) callers: Callers,
    /// Parts that the start of raft consumes. The holder of this lock decides which cluster the member joins.
    pub(super) parts: AsyncMutex<Option<RaftParts>>,
    pub(super) state: SharedState,
    pub(super) journal: Journal,
    pub(super) counters: Arc<Counters>,
    pub(super) gate: Arc<Gate>,
    /// Limit of all proposals that wait on this member.
    pub(super) places: Places,
    /// Limit of the forwarded proposals among these: the leader reads that many at once.
    pub(super) forwards: Places,
}

impl Inner {
    /// Returns the response to a hello request: name and standing.
    pub(super) fn hello(&self) -> Hello {
        self.profile.hello(self.lifecycle.running().as_deref())
    }

    /// The time since this member last knew a working leader; 0 if it knows one now.
    pub(super) fn stale_ms(&self) -> u64 {
        self.leadership.stale_ms(self.lifecycle.running().as_deref())
    }
}
