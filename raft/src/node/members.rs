//! Members as the leader sees them: only the leader knows each member's progress and last answer.

use std::time::Duration;

use ipam_api::limits::BUDGET_MS_MAX;
use tokio::time::Instant;

use super::error::ReadError;
use super::inner::Inner;
use super::raft::{Leader, leader};
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
        let told = match leader(&running.raft) {
            Leader::Unknown => Err(Declined::NoLeader),
            Leader::Me => here(inner),
            Leader::Other(id, member) => {
                let channel = running.peers.channel(id, &member, Purpose::Control);
                match channel.call(Request::Members, deadline.min(Instant::now() + PATIENCE)).await {
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

/// The members as this one sees them, if it leads.
pub(super) fn here(inner: &Inner) -> Result<Vec<MemberInfo>, Declined> {
    let status = inner.status();
    if status.role == Role::Leader && inner.stale_ms() == 0 {
        Ok(status.members)
    } else {
        Err(Declined::NoLeader)
    }
}
