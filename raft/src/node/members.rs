//! Members as the leader sees them: only the leader knows each member's progress and last answer.

use std::time::Duration;

use ipam_api::limits::BUDGET_MS_MAX;
use tokio::time::{Instant, timeout_at};

use super::error::ReadError;
use super::inner::Inner;
use super::raft::{Leader, RaftHandle, leader};
use super::reads;
use crate::transport::{Answer, Declined, Purpose, Request};
use crate::types::{MemberInfo, Role};

/// Time limit of the leader's answer, after which the leader is determined again.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests the members from the leader.
pub(super) async fn of_leader(inner: &Inner, deadline: Instant) -> Result<Vec<MemberInfo>, ReadError> {
    let deadline = deadline.min(Instant::now() + Duration::from_millis(BUDGET_MS_MAX));
    loop {
        if inner.lifecycle.is_stopping() {
            return Err(ReadError::ShuttingDown);
        }
        if Instant::now() >= deadline {
            return Err(ReadError::NoLeader);
        }
        let Some(running) = inner.lifecycle.running_by(deadline).await else { continue };
        let until = deadline.min(Instant::now() + PATIENCE);
        let told = match leader(&running.raft) {
            Leader::Unknown => Err(Declined::NoLeader),
            Leader::Me => {
                let told = timeout_at(until, confirmed(inner, &running.raft)).await;
                told.unwrap_or(Err(Declined::NoLeader))
            }
            Leader::Other(id, member) => {
                let channel = running.peers.channel(id, &member, Purpose::Control);
                match channel.call(Request::Members, until).await {
                    Ok(Answer::Members(told)) => told,
                    _ => Err(Declined::NoLeader),
                }
            }
        };
        match told {
            Ok(members) => return Ok(members),
            Err(_) => inner.lifecycle.change(&running, deadline).await,
        }
    }
}

/// Returns the members as this one sees them, once a majority has confirmed that it leads.
pub(super) async fn confirmed(inner: &Inner, raft: &RaftHandle) -> Result<Vec<MemberInfo>, Declined> {
    reads::of_leader(raft).await?;
    here(inner)
}

/// The members as this one sees them, if it leads.
pub(super) fn here(inner: &Inner) -> Result<Vec<MemberInfo>, Declined> {
    let status = inner.status();
    if status.role == Role::Leader && inner.stale_ms() == 0 {
        Ok(status.members)
    } else {
        Err(Declined::NoLeader)
    }
}
