//! Disks of the voters, as the leader sees them: it hands leadership to a member with more free space.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, sleep};

use super::config::Timing;
use super::gate::{Gate, Rooms, Verdict};
use super::lifecycle::Lifecycle;
use super::raft::{Leader, leader};
use super::running::Running;
use super::transfer::hand_over;
use crate::store::FreeSpace;
use crate::transport::{Answer, Purpose, Request};

/// Interval between two checks of the disks.
const LOOK: Duration = Duration::from_millis(250);
/// Time limit for another member to take over the leadership.
const PATIENCE: Duration = Duration::from_secs(2);

/// Monitors the disks while the member runs: its own and, as the leader, those of the others.
pub(super) async fn run(lifecycle: Arc<Lifecycle>, gate: Arc<Gate>, timing: Timing) {
    loop {
        sleep(LOOK).await;
        let Some(running) = lifecycle.running() else { continue };
        if !matches!(leader(&running.raft), Leader::Me) {
            gate.note_others(None);
            continue;
        }
        if let Some(stalled) = gate.stalled() {
            tracing::warn!(?stalled, "the disk does not answer; leadership is transferred");
            // A member that has begun a transfer sends no more heartbeats, so the others elect in any case.
            hand_over(&running, timing, Instant::now() + PATIENCE, |_| true).await;
            continue;
        }
        let (others, majority) = ask(&running, timing).await;
        gate.note_others(Some((others.clone(), majority)));
        if gate.verdict() == Verdict::HandOver {
            let mine = gate.headroom.room();
            tracing::warn!(room = mine.as_str(), "this disk is running full and others are not");
            let roomier = |id| others.iter().any(|(other, room)| *other == id && *room > mine);
            hand_over(&running, timing, Instant::now() + PATIENCE, roomier).await;
        }
    }
}

/// Requests the free space of the other voters; returns it with the size of a majority.
async fn ask(running: &Running, timing: Timing) -> (Rooms, usize) {
    let recently = Duration::from_millis(timing.election_max_ms);
    let voters = running.voters();
    let alive: Vec<u64> = {
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow_watched();
        let heard = metrics.heartbeat.iter().flatten().filter_map(|(id, seen)| Some((*id, (*seen)?)));
        heard.filter(|(_, seen)| seen.into_inner().elapsed() < recently).map(|(id, _)| id).collect()
    };
    let others = running.members().into_iter();
    let others = others.filter(|(id, _)| voters.contains(id) && *id != running.me.member_id);
    let asked = others.map(|(id, member)| {
        let alive = alive.contains(&id);
        async move {
            // The connection of heartbeats is not used: a member of an older version closes it on an unknown
            // request.
            let channel = running.peers.channel(id, &member, Purpose::Journal);
            match channel.call(Request::Headroom, Instant::now() + LOOK).await {
                Ok(Answer::Headroom(room)) => Some((id, room)),
                // A member that is alive but reports no value counts as having enough space.
                _ => alive.then_some((id, FreeSpace::Enough)),
            }
        }
    });
    let answers = join_all(asked).await.into_iter().flatten().collect();
    (answers, voters.len() / 2 + 1)
}
