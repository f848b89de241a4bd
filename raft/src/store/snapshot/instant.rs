//! State at one instant: the source of a snapshot, and the beginning of a start or a replacement.

use std::fmt;

use openraft::type_config::alias::SnapshotMetaOf;

use crate::store::journal::Blocks;
use crate::types::{LogId, StoredMembership, Types};
use ipam_machine::State;

/// The entry and the membership of an instant, as openraft has them.
pub(in crate::store) type Meta = SnapshotMetaOf<Types>;

/// State, last applied entry, membership and open segment of one instant. The default is the instant before
/// the first entry.
#[derive(Clone, Default)]
pub(in crate::store) struct Instant {
    pub(in crate::store) state: State,
    pub(in crate::store) applied: Option<LogId>,
    pub(in crate::store) membership: StoredMembership,
    pub(in crate::store) journal: Blocks,
}

impl Instant {
    pub(in crate::store) fn meta(&self) -> Meta {
        Meta { last_log_id: self.applied, last_membership: self.membership.clone() }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instant").finish_non_exhaustive()
    }
}
