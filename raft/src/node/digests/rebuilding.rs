//! Rebuild of a wrong state in place, from this member's own snapshot and log. If that fails, from a snapshot
//! of a member with which the majority agrees.

use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, sleep};

use super::super::counters::Counters;
use super::super::running::Running;
use super::integrity::Integrity;
use crate::store::Source;
use crate::transport::{Answer, Purpose, Request};

/// Time limit for a member to build and send a snapshot.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(600);
/// Pause between two triggers of a snapshot.
const TRIGGER_PAUSE: Duration = Duration::from_millis(100);

/// Rebuilds the state from this member's own snapshot and log. Returns true if the rebuilt state has the
/// right digest at the disputed entry.
pub(super) async fn from_own(integrity: &Integrity, running: &Running, index: u64, right: u128) -> bool {
    if let Err(why) = rebuild(integrity, running, Source::Own).await {
        tracing::warn!(why, "the state can't be made again from this member's own snapshot and log");
        return false;
    }
    // A snapshot taken after the disputed entry may hold the wrong state.
    integrity.state.checkpoints().iter().any(|noted| noted.index == index && noted.digest == right)
}

/// Rebuilds the state from the snapshot of a member with the right one.
pub(super) async fn from_peers(integrity: &Integrity, running: &Running, fellows: &[u64]) {
    for (id, member) in running.members().into_iter().filter(|(id, _)| fellows.contains(id)) {
        match from_peer(integrity, running, id, &member).await {
            Ok(()) => return tracing::info!(from = member.name, "the state was made again from a snapshot"),
            Err(why) => tracing::warn!(from = member.name, why, "the state can't be had from there"),
        }
    }
}

async fn from_peer(
    integrity: &Integrity,
    running: &Running,
    id: u64,
    member: &crate::types::Member,
) -> Result<(), String> {
    let at_least = running.raft.metrics().borrow_watched().snapshot.map_or(0, |last| last.index);
    let come = integrity.awaited.begin();
    let deadline = Instant::now() + SNAPSHOT_PATIENCE;
    let request = Request::SendSnapshot { to: running.me.member_id, at_least };
    let answer = running.peers.channel(id, member, Purpose::Journal).call(request, deadline).await;
    let come = integrity.awaited.end(come);
    match answer.map_err(|error| error.to_string())? {
        Answer::SnapshotSent => {}
        Answer::Failed(why) => return Err(why),
        _ => return Err("it answered something else".to_owned()),
    }
    match come {
        Some(file) => rebuild(integrity, running, Source::Peer(Box::new(file))).await,
        // The snapshot was ahead of this member, and is installed as usual.
        None => Ok(()),
    }
}

async fn rebuild(integrity: &Integrity, running: &Running, source: Source) -> Result<(), String> {
    let log = running.log.clone();
    // The rebuild runs in the state machine's task, so that openraft hands out no entries meanwhile. Entries
    // that lag are applied first.
    let rebuilt = running.raft.with_state_machine(move |machine| Box::pin(machine.rebuild(log, source)));
    rebuilt.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Counters::add(&integrity.counters.states_rebuilt);
    Ok(())
}

/// Builds a current snapshot and sends it to the member that requested it.
pub(in super::super) async fn send_snapshot(
    integrity: &Integrity,
    running: &Running,
    to: u64,
    at_least: u64,
) -> Result<(), String> {
    if let Some(why) = integrity.trust.quarantine_reason() {
        return Err(why);
    }
    let member = running.members().into_iter().find(|(id, _)| *id == to);
    let (_, member) = member.ok_or("it isn't a member")?;
    let deadline = Instant::now() + SNAPSHOT_PATIENCE;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let metrics = running.raft.metrics();
    let index = |log_id: Option<crate::types::LogId>| log_id.map_or(0, |log_id| log_id.index);
    let wanted = index(metrics.borrow_watched().last_applied).max(at_least);
    while metrics.borrow_watched().snapshot.is_none_or(|last| last.index < wanted) {
        // openraft builds one snapshot at a time and ignores a trigger meanwhile. A snapshot in progress may
        // be older than the requested one, and without a further entry no other would follow. One that begins
        // before this member has applied the requested entry is too old as well.
        if index(metrics.borrow_watched().last_applied) >= wanted {
            running.raft.trigger().snapshot().await.map_err(|error| text(&error))?;
        }
        if Instant::now() >= deadline {
            return Err("no snapshot was built in time".to_owned());
        }
        sleep(TRIGGER_PAUSE).await;
    }
    let snapshot = running.raft.get_snapshot().await.map_err(|error| text(&error))?;
    let snapshot = snapshot.ok_or("the snapshot is gone")?;
    let vote = running.raft.metrics().borrow_watched().vote;
    let sent = running.peers.send_snapshot(to, &member, vote, snapshot, SNAPSHOT_PATIENCE).await;
    sent.map(drop).map_err(|error| text(&error))
}
