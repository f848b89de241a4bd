//! Whether this member may take proposals, as far as disks go.
//!
//! An entry needs room on a majority of the disks, and a leader whose own disk answers. Where another member is
//! better placed, this one hands over; where a majority has no room, what would need some is refused, clearly and
//! before it enters the log, and comes back by itself with the space. Reads need no disk and go on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use ipam_api::limits::ELECTION_TIMEOUT_MS_MAX;
use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, sleep};

use super::config::Timing;
use super::handing_over::hand_over;
use super::inner::{Inner, held};
use super::running::{Leader, Running, leader};
use crate::machine::Action;
use crate::store::{Headroom, Room, StoreCounters};
use crate::transport::{Answer, Declined, Purpose, Request};

/// How often to look.
const LOOK: Duration = Duration::from_millis(250);
/// A disk that owes an answer for so long is stalled, however nervous elections are.
const STALLED: Duration = Duration::from_secs(1);
/// A flush is that many times as long as usual on a disk that stalls. One that is slow all the time still works.
const STALLED_FLUSHES: u64 = 4;
/// How long a member that could lead instead has for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a leader does with a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Take it.
    Open,
    /// Take it if it makes the state smaller.
    Shrinking,
    /// Refuse it.
    Closed,
    /// Let another member do it.
    HandOver,
}

/// Members and how much room each has.
type Rooms = Vec<(u64, Room)>;

/// The gate, as the proposals and the status see it.
pub(super) struct Gate {
    pub(super) headroom: Arc<Headroom>,
    counters: Arc<StoreCounters>,
    stalled: Duration,
    /// The room on the disks of other voters that answered, and how many voters are a majority; nothing while
    /// this member doesn't lead.
    others: Mutex<Option<(Rooms, usize)>>,
}

impl Gate {
    pub(super) fn new(headroom: Arc<Headroom>, counters: Arc<StoreCounters>, timing: Timing) -> Self {
        let stalled = STALLED.max(Duration::from_millis(timing.election_max_ms.saturating_mul(2)));
        Self { headroom, counters, stalled, others: Mutex::default() }
    }

    /// For how long the disk has owed an answer, if that is too long.
    pub(super) fn stalled(&self) -> Option<Duration> {
        let usual_ms = self.counters.flush.median_ms().saturating_mul(STALLED_FLUSHES);
        let limit = self.stalled.max(Duration::from_millis(usual_ms.min(ELECTION_TIMEOUT_MS_MAX)));
        Some(self.counters.flush.outstanding()).filter(|outstanding| *outstanding > limit)
    }

    /// Lets a proposal in, or says why not. Nothing is appended then.
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

    fn verdict(&self) -> Verdict {
        let mine = self.headroom.room();
        match &*held(&self.others) {
            Some((others, majority)) => judge(mine, others.iter().map(|(_, room)| *room), *majority),
            None => judge(mine, std::iter::empty(), usize::MAX),
        }
    }
}

/// What follows from the rooms that are known: members that are down have no say, and where a majority is silent
/// it isn't the disks that stop the cluster.
fn judge(mine: Room, others: impl Iterator<Item = Room>, majority: usize) -> Verdict {
    let mut rooms: Vec<Room> = others.chain([mine]).collect();
    rooms.sort_unstable_by(|a, b| b.cmp(a));
    match rooms.get(majority.saturating_sub(1)).copied() {
        None | Some(Room::Enough) if mine == Room::Enough => Verdict::Open,
        Some(most) if mine < most => Verdict::HandOver,
        Some(Room::Nothing) => Verdict::Closed,
        None if mine == Room::Nothing => Verdict::Closed,
        _ => Verdict::Shrinking,
    }
}

/// Whether an action leaves less to keep than there was, or as much and something would be lost without it; its
/// own entry is small and soon gone.
fn shrinks(action: &Action) -> bool {
    matches!(
        action,
        Action::Delete(_)
            | Action::ReleaseAttachment(_)
            | Action::ReleaseAllocation { .. }
            | Action::ReleaseEndpoint { .. }
            | Action::Renew(_)
            | Action::Expire
            | Action::TrimJournal { .. }
    )
}

/// Follows the disks for as long as the member runs: its own, and while it leads those of the others.
pub(super) async fn run(inner: Arc<Inner>) {
    loop {
        sleep(LOOK).await;
        let Some(running) = inner.running() else { continue };
        let gate = &inner.gate;
        if !matches!(leader(&running.raft), Leader::Me) {
            *held(&gate.others) = None;
            continue;
        }
        if let Some(stalled) = gate.stalled() {
            tracing::warn!(?stalled, "the disk doesn't answer; another member shall lead");
            // Even if none takes the office: from here on this member is silent, and the others elect.
            hand_over(&inner, &running, Instant::now() + PATIENCE, |_| true).await;
            continue;
        }
        let (others, majority) = ask(&inner, &running).await;
        *held(&gate.others) = Some((others.clone(), majority));
        if gate.verdict() == Verdict::HandOver {
            let mine = gate.headroom.room();
            tracing::warn!(room = mine.as_str(), "this disk is running full and others are not");
            let roomier = |id| others.iter().any(|(other, room)| *other == id && *room > mine);
            hand_over(&inner, &running, Instant::now() + PATIENCE, roomier).await;
        }
    }
}

/// Asks the other voters how much room they have; and how many voters are a majority.
async fn ask(inner: &Inner, running: &Running) -> (Vec<(u64, Room)>, usize) {
    let recently = Duration::from_millis(inner.timing.election_max_ms);
    let (voters, alive) = {
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        let voters: Vec<u64> = metrics.membership_config.membership().voter_ids().collect();
        let heard = metrics.heartbeat.iter().flatten().filter_map(|(id, seen)| Some((*id, (*seen)?)));
        let alive = heard.filter(|(_, seen)| seen.into_inner().elapsed() < recently);
        (voters, alive.map(|(id, _)| id).collect::<Vec<u64>>())
    };
    let others = running.members().into_iter();
    let others = others.filter(|(id, _)| voters.contains(id) && *id != running.me.member_id);
    let asked = others.map(|(id, member)| {
        let alive = alive.contains(&id);
        async move {
            // Not beside the heartbeats: a member of an older version hangs up on a question that it can't read.
            let channel = running.peers.channel(id, &member, Purpose::Journal);
            match channel.call(Request::Headroom, Instant::now() + LOOK).await {
                Ok(Answer::Headroom(room)) => Some((id, room)),
                // It is there, and doesn't say: then nothing speaks against it.
                _ => alive.then_some((id, Room::Enough)),
            }
        }
    });
    let answers = join_all(asked).await.into_iter().flatten().collect();
    (answers, voters.len() / 2 + 1)
}

#[cfg(test)]
mod tests {
    use Room::{Enough, Little, Nothing};

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
