//! Admission of proposals by the state of the disks.
//!
//! An entry needs space on a majority of the disks, and a leader whose own disk responds. If another member
//! has more space, this one hands over leadership; without space on a majority, proposals that need some are
//! refused before they enter the log. They are accepted again once there is space. Reads need no disk and
//! continue.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ipam_api::limits::ELECTION_TIMEOUT_MS_MAX;

use super::config::Timing;
use crate::store::{FreeSpace, Headroom, StoreCounters};
use crate::sync::held;
use crate::transport::Declined;
use ipam_machine::Action;

/// Minimum time without an answer after which a disk counts as stalled, for any election timeout.
const STALLED: Duration = Duration::from_secs(1);
/// Factor of the usual flush time after which a disk counts as stalled. A permanently slow disk still works.
const STALLED_FLUSHES: u64 = 4;
/// A leader's treatment of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accept all proposals.
    Open,
    /// Accept only proposals that shrink the state.
    Shrinking,
    /// Refuse all proposals.
    Closed,
    /// Refuse all proposals, since another member is to lead.
    HandOver,
}

/// Members with their free space.
pub(super) type Rooms = Vec<(u64, FreeSpace)>;

/// Admission gate, shared by the proposal queue and the status.
pub(super) struct Gate {
    pub(super) headroom: Arc<Headroom>,
    counters: Arc<StoreCounters>,
    stalled: Duration,
    /// Free space of the other voters that answered, and the size of a majority; none on followers.
    others: Mutex<Option<(Rooms, usize)>>,
}

impl Gate {
    pub(super) fn new(headroom: Arc<Headroom>, counters: Arc<StoreCounters>, timing: Timing) -> Self {
        let stalled = STALLED.max(Duration::from_millis(timing.election_max_ms.saturating_mul(2)));
        Self { headroom, counters, stalled, others: Mutex::default() }
    }

    /// Returns the duration of the current flush, if the disk counts as stalled.
    pub(super) fn stalled(&self) -> Option<Duration> {
        let usual_ms = self.counters.flush.median_ms().saturating_mul(STALLED_FLUSHES);
        let limit = self.stalled.max(Duration::from_millis(usual_ms.min(ELECTION_TIMEOUT_MS_MAX)));
        Some(self.counters.flush.outstanding()).filter(|outstanding| *outstanding > limit)
    }

    /// Admits a proposal, or returns the reason of its refusal. Nothing is appended then.
    pub(super) fn admit(&self, action: &Action) -> Result<(), Declined> {
        if self.stalled().is_some() {
            return Err(Declined::NoLeader);
        }
        match self.verdict() {
            Verdict::Open => Ok(()),
            Verdict::Shrinking if shrinks(action) => Ok(()),
            Verdict::Shrinking | Verdict::Closed => Err(Declined::DiskFull),
            Verdict::HandOver => Err(Declined::NoLeader),
        }
    }

    /// Records the free space of the other voters and the size of a majority; none on followers.
    pub(super) fn note_others(&self, others: Option<(Rooms, usize)>) {
        *held(&self.others) = others;
    }

    /// The treatment of proposals now, if this member leads.
    pub(super) fn verdict(&self) -> Verdict {
        let mine = self.headroom.room();
        match &*held(&self.others) {
            Some((others, majority)) => judge(mine, others.iter().map(|(_, room)| *room), *majority),
            None => judge(mine, std::iter::empty(), usize::MAX),
        }
    }
}

/// Decides the treatment of proposals from the known free space. Members that are down don't count. Without a
/// majority of answers only this member's own disk decides.
fn judge(mine: FreeSpace, others: impl Iterator<Item = FreeSpace>, majority: usize) -> Verdict {
    let mut rooms: Vec<FreeSpace> = others.chain([mine]).collect();
    rooms.sort_unstable_by(|a, b| b.cmp(a));
    match rooms.get(majority.saturating_sub(1)).copied() {
        None | Some(FreeSpace::Enough) if mine == FreeSpace::Enough => Verdict::Open,
        Some(most) if mine < most => Verdict::HandOver,
        Some(FreeSpace::Nothing) => Verdict::Closed,
        None if mine == FreeSpace::Nothing => Verdict::Closed,
        _ => Verdict::Shrinking,
    }
}

/// Returns true if an action shrinks the state, or keeps its size and prevents a loss. The entry of such an
/// action is small and soon purged.
fn shrinks(action: &Action) -> bool {
    matches!(
        action,
        Action::Delete(_)
            | Action::ReleaseAttachment(_)
            | Action::ReleaseAttachmentOf(_)
            | Action::ReleaseAllocation { .. }
            | Action::ReleaseAllocations { .. }
            | Action::ReleaseEndpoint { .. }
            | Action::Renew(_)
            | Action::Expire
            | Action::TrimJournal { .. }
    )
}

#[cfg(test)]
mod tests {
    use FreeSpace::{Enough, Little, Nothing};

    use super::*;

    #[test]
    fn a_majority_with_room_decides_and_the_leader_must_be_among_it() {
        for (mine, others, verdict) in [
            (Enough, &[Enough, Nothing][..], Verdict::Open),
            (Enough, &[Enough], Verdict::Open),
            (Enough, &[Little, Nothing], Verdict::Shrinking),
            (Enough, &[Little], Verdict::Shrinking),
            (Enough, &[Nothing, Nothing], Verdict::Closed),
            (Enough, &[], Verdict::Open),
            (Little, &[Enough, Enough], Verdict::HandOver),
            (Little, &[Enough, Little], Verdict::Shrinking),
            (Nothing, &[Little, Little], Verdict::HandOver),
            (Nothing, &[Enough, Nothing], Verdict::Closed),
            (Nothing, &[], Verdict::Closed),
        ] {
            assert_eq!(judge(mine, others.iter().copied(), 2), verdict, "{mine:?} {others:?}");
        }
        assert_eq!(judge(Little, [].into_iter(), 1), Verdict::Shrinking, "alone");
        assert_eq!(judge(Nothing, [].into_iter(), 1), Verdict::Closed, "alone");
    }
}
