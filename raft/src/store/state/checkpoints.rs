//! Checkpoints: digests of the state at log entries that are the same on all replicas.

use std::collections::VecDeque;

use ipam_api::limits::{CHECKPOINT_EVERY_ENTRIES, CHECKPOINTS_KEPT};
use serde::{Deserialize, Serialize};

use ipam_machine::State;

/// Digest of the state after one log entry, small enough for frequent exchange between members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The log entry.
    pub(crate) index: u64,
    /// Revision of the state after the entry.
    pub(crate) revision: u64,
    /// Digest of the state after the entry.
    pub(crate) digest: u128,
}

/// Newest checkpoints of a member. They restart with every start and every replacement of the state, so all
/// of them belong to the present state.
#[derive(Debug, Clone, Default)]
pub(super) struct Checkpoints(VecDeque<Checkpoint>);

impl Checkpoints {
    /// Returns true if members compare their states after an entry. Entries without commands are compared as
    /// well: each leader begins with such an entry, and adds another when a member waits for the next
    /// comparison.
    pub(super) fn is_due(index: u64, carries_commands: bool) -> bool {
        !carries_commands || index.is_multiple_of(CHECKPOINT_EVERY_ENTRIES)
    }

    pub(super) fn note(&mut self, index: u64, state: &State) {
        if self.0.len() >= CHECKPOINTS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Checkpoint { index, revision: state.revision(), digest: state.digest() });
    }

    /// All checkpoints, oldest first.
    pub(super) fn all(&self) -> Vec<Checkpoint> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_kept() {
        let mut checkpoints = Checkpoints::default();
        let state = State::new();
        for index in 0..2 * CHECKPOINTS_KEPT as u64 {
            checkpoints.note(index, &state);
        }
        let all = checkpoints.all();
        assert_eq!((all.len(), all[0].index), (CHECKPOINTS_KEPT, CHECKPOINTS_KEPT as u64));
        assert_eq!(all[0].digest, state.digest());
    }

    #[test]
    fn they_are_where_the_log_says() {
        let due: Vec<u64> =
            (1..=2 * CHECKPOINT_EVERY_ENTRIES).filter(|index| Checkpoints::is_due(*index, true)).collect();
        assert_eq!(due, [CHECKPOINT_EVERY_ENTRIES, 2 * CHECKPOINT_EVERY_ENTRIES]);
        assert!(Checkpoints::is_due(1, false));
    }
}
