//! Applied state with its Raft position.

use std::sync::Arc;

use super::checkpoints::Checkpoints;
use crate::store::journal::Recent;
use crate::store::snapshot::Instant;
use crate::types::{LogId, StoredMembership};
use ipam_machine::State;

/// Applied state with its Raft position. A clone costs microseconds and isn't affected by later changes.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) state: State,
    /// Last entry whose effect is in the state.
    pub(crate) applied: Option<LogId>,
    pub(in crate::store) membership: StoredMembership,
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) recent: Recent,
    /// Number that changes when another state replaces the present one.
    pub(super) install_count: u64,
    /// True if this state has replaced a wrong one.
    pub(super) corrects: bool,
}

impl Live {
    /// Continues from the state of an instant.
    pub(super) fn of(instant: Instant) -> Self {
        let Instant { state, applied, membership, journal } = instant;
        let recent = Recent::new(&state.header().journal, journal);
        let checkpoints = Arc::default();
        Self { state, applied, membership, checkpoints, recent, install_count: 0, corrects: false }
    }

    /// All that a snapshot needs.
    pub(in crate::store) fn point(&self) -> Instant {
        Instant {
            state: self.state.clone(),
            applied: self.applied,
            membership: self.membership.clone(),
            journal: self.recent.open().to_vec(),
        }
    }

    /// Moves the state's new journal frames into the recent journal.
    pub(super) fn keep_journal(&mut self) {
        let journaled = self.state.take_journaled();
        self.recent.take(journaled);
    }
}
