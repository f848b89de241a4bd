//! Leadership that goes from one member to another on purpose, without the silence of an election.

use std::cmp::Reverse;
use std::time::Duration;

use ipam_api::limits::BUDGET_MS_MAX;
use openraft::Instant as _;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::time::{Instant, timeout_at};

use super::error::HandOverError;
use super::inner::Inner;
use super::members::{self, BEHIND_MAX};
use super::running::{Leader, Running, leader};
use super::working::{change, running_by};
use crate::transport::{Answer, CallError, NotHandedOver, Purpose, Request};

/// Asks whoever leads to hand over to `to`, until it leads or the time is up.
pub(super) async fn ask(inner: &Inner, to: u64, deadline: Instant) -> Result<(), HandOverError> {
    let deadline = deadline.min(Instant::now() + Duration::from_millis(BUDGET_MS_MAX));
    loop {
        if inner.is_stopping() {
            return Err(HandOverError::ShuttingDown);
        }
        if Instant::now() >= deadline {
            return Err(HandOverError::NoLeader);
        }
        let Some(running) = running_by(inner, deadline).await else { continue };
        let handed_over = match leader(&running.raft) {
            Leader::Nobody => Err(NotHandedOver::NoLeader),
            Leader::Me => here(inner, &running, to, deadline).await,
            Leader::Other(id, _) if id == to => Ok(()),
            Leader::Other(id, member) => {
                let left = deadline.saturating_duration_since(Instant::now());
                let budget_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                let channel = running.peers.channel(id, &member, Purpose::Control);
                match channel.call(Request::HandOver { to, budget_ms }, deadline).await {
                    Ok(Answer::HandOver(handed_over)) => handed_over,
                    Ok(_) | Err(CallError::NotSent(_) | CallError::Lost(_)) => Err(NotHandedOver::NoLeader),
                    Err(CallError::TimedOut) => Err(NotHandedOver::Late),
                }
            }
        };
        match handed_over {
            Ok(()) => return Ok(()),
            Err(NotHandedOver::NoLeader) => change(inner, &running, deadline).await,
            Err(NotHandedOver::Unfit(why)) => return Err(HandOverError::Unfit(why)),
            Err(NotHandedOver::Late) => return Err(HandOverError::DeadlineExceeded),
        }
    }
}

/// The same on the member that leads. One that can't take over is not tried: until somebody else leads, nobody
/// could do anything.
pub(super) async fn here(
    inner: &Inner,
    running: &Running,
    to: u64,
    deadline: Instant,
) -> Result<(), NotHandedOver> {
    let members = members::here(inner).map_err(|_| NotHandedOver::NoLeader)?;
    if to == running.me.member_id {
        return Ok(());
    }
    let Some(heir) = members.iter().find(|member| member.id == to) else {
        return Err(NotHandedOver::Unfit(format!("there is no member {to}")));
    };
    let name = &heir.name;
    if !heir.votes() {
        return Err(NotHandedOver::Unfit(format!("{name} is a learner and has no vote")));
    }
    if heir.answers != Some(true) {
        return Err(NotHandedOver::Unfit(format!("{name} doesn't answer")));
    }
    if heir.behind.is_none_or(|behind| behind > BEHIND_MAX) {
        return Err(NotHandedOver::Unfit(format!("{name} lacks too much of the log")));
    }
    let patience = Duration::from_millis(4 * inner.timing.election_max_ms);
    match transfer(running, to, deadline.min(Instant::now() + patience)).await {
        Some(id) if id == to => Ok(()),
        _ => Err(NotHandedOver::Late),
    }
}

/// Gives the office to the voter that lacks least of those that suit, and waits until somebody has it.
pub(super) async fn hand_over(
    inner: &Inner,
    running: &Running,
    deadline: Instant,
    suits: impl Fn(u64) -> bool,
) {
    // As long as a voter may need to find out that nobody leads.
    let patience = Duration::from_millis(2 * inner.timing.election_max_ms);
    for heir in heirs(inner, running).into_iter().filter(|heir| suits(*heir)) {
        if !matches!(leader(&running.raft), Leader::Me) || Instant::now() >= deadline {
            return;
        }
        transfer(running, heir, deadline.min(Instant::now() + patience)).await;
    }
}

/// Hands over, and waits until another one leads; says which.
async fn transfer(running: &Running, heir: u64, until: Instant) -> Option<u64> {
    let mut changes = running.raft.server_metrics();
    tracing::info!(heir, "handing leadership over");
    running.raft.trigger().transfer_leader(heir).await.ok()?;
    loop {
        if let Leader::Other(id, _) = leader(&running.raft) {
            tracing::info!(leader = id, "leadership was handed over");
            return Some(id);
        }
        if !matches!(timeout_at(until, changes.changed()).await, Ok(Ok(()))) {
            return None;
        }
    }
}

/// The other voters, the best one first: heard of lately, then whose log is longest.
fn heirs(inner: &Inner, running: &Running) -> Vec<u64> {
    let metrics = running.raft.metrics();
    let metrics = metrics.borrow_watched();
    let recently = Duration::from_millis(inner.timing.election_max_ms);
    let mut heirs: Vec<_> = metrics
        .membership_config
        .membership()
        .voter_ids()
        .filter(|id| *id != running.me.member_id)
        .map(|id| {
            let seen = metrics.heartbeat.as_ref().and_then(|heartbeat| heartbeat.get(&id).copied().flatten());
            let alive = seen.is_some_and(|seen| seen.into_inner().elapsed() < recently);
            let matched = metrics.replication.as_ref().and_then(|replication| *replication.get(&id)?);
            (Reverse((alive, matched)), id)
        })
        .collect();
    heirs.sort_unstable();
    heirs.into_iter().map(|(_, id)| id).collect()
}
