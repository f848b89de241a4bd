//! Leadership transfer on purpose, without the silence of an election.

use std::time::Duration;

use ipam_api::limits::BUDGET_MS_MAX;
use tokio::time::Instant;

use super::error::HandOverError;
use super::inner::Inner;
use super::members;
use super::raft::{Leader, leader};
use super::running::Running;
use super::transfer::transfer;
use crate::durations::as_ms;
use crate::transport::{Answer, CallError, NotHandedOver, Purpose, Request};

/// Log entries that a voter may lack when it takes over: it decides no proposal until it has them.
const HEIR_MISSING_ENTRIES_MAX: u64 = 10_000;

/// Requests a leadership transfer to member `to`, and waits until it leads or the deadline passes.
pub(super) async fn ask(inner: &Inner, to: u64, deadline: Instant) -> Result<(), HandOverError> {
    let deadline = deadline.min(Instant::now() + Duration::from_millis(BUDGET_MS_MAX));
    loop {
        if inner.lifecycle.is_stopping() {
            return Err(HandOverError::ShuttingDown);
        }
        if Instant::now() >= deadline {
            return Err(HandOverError::NoLeader);
        }
        let Some(running) = inner.lifecycle.running_by(deadline).await else { continue };
        let handed_over = match leader(&running.raft) {
            Leader::Unknown => Err(NotHandedOver::NoLeader),
            Leader::Me => here(inner, &running, to, deadline).await,
            Leader::Other(id, _) if id == to => Ok(()),
            Leader::Other(id, member) => {
                let budget_ms = as_ms(deadline.saturating_duration_since(Instant::now()));
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
            Err(NotHandedOver::NoLeader) => inner.lifecycle.change(&running, deadline).await,
            Err(NotHandedOver::Unfit(why)) => return Err(HandOverError::Unfit(why)),
            Err(NotHandedOver::Late) => return Err(HandOverError::DeadlineExceeded),
        }
    }
}

/// Transfers leadership from this member to `to`. A target that can't take over is refused at once, because
/// no proposal is decided until another member leads.
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
    if heir.behind.is_none_or(|behind| behind > HEIR_MISSING_ENTRIES_MAX) {
        return Err(NotHandedOver::Unfit(format!("{name} lacks too much of the log")));
    }
    let patience = Duration::from_millis(4 * inner.profile.timing.election_max_ms);
    match transfer(running, to, deadline.min(Instant::now() + patience)).await {
        Some(id) if id == to => Ok(()),
        _ => Err(NotHandedOver::Late),
    }
}
