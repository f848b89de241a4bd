//! The state of one instant: what a snapshot is written from, and what a start or a replacement goes on from.

use crate::store::journal::Blocks;
use crate::types::{LogId, StoredMembership};
use ipam_machine::State;

/// State, last applied entry, membership and open segment of the journal, of one instant; by default the one
/// before the first entry.
#[derive(Clone, Default)]
pub(in crate::store) struct Instant {
    pub(in crate::store) state: State,
    pub(in crate::store) applied: Option<LogId>,
    pub(in crate::store) membership: StoredMembership,
    pub(in crate::store) journal: Blocks,
}
