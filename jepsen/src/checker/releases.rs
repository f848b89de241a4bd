//! Releases that were acknowledged and that no restore has undone.

use std::collections::BTreeMap;

use super::pairs::{Pairs, ended};

/// Acknowledged release of a grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Released {
    /// Time of the first answer that reports the release.
    pub(super) end_ns: u64,
    /// Revision of that answer.
    pub(super) revision: Option<u64>,
    /// Operation.
    pub(super) operation: u64,
}

/// Returns the released grants by id. With a restore, only those whose revision it has kept.
pub(super) fn releases(pairs: &Pairs<'_>) -> BTreeMap<u64, Released> {
    let mut releases: BTreeMap<u64, Released> = BTreeMap::new();
    let restores = &pairs.journal.restores;
    for call in &pairs.calls {
        let revision = call.value().revision;
        let is_kept = restores.is_empty()
            || (!pairs.is_repeated(call)
                && revision.is_some_and(|revision| !pairs.journal.is_lost(revision)));
        for grant in ended(call).filter(|_| is_kept) {
            let released = Released { end_ns: call.end_ns(), revision, operation: call.begin.index };
            let known = releases.entry(grant.id).or_insert(released);
            if released.end_ns < known.end_ns {
                *known = released;
            }
        }
    }
    releases
}
