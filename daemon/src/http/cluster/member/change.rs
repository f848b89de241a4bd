//! Promotion, removal and replacement of members: planned, decided in the log, then awaited.

use std::time::Duration;

use axum::extract::Path;
use ipam_api::cluster::{MemberChange, ReplaceRequest};
use ipam_api::name::Name;
use ipam_api::{Code, Problem};
use ipam_machine::command::ChangeMembers;
use ipam_machine::model::MemberStanding;
use ipam_machine::{Action, State};
use ipam_raft::node::MemberInfo;
use tokio::time::Instant;

use super::list::WRITE;
use super::plan::{self, Plan};
use crate::http::request::{ApiError, ApiResponse, Consistency, Write, in_path};

/// Interval in which the completion of a change is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Part of the caller's budget that is reserved for the answer.
const ANSWERING: Duration = Duration::from_millis(500);

pub(in crate::http) async fn promote(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<MemberChange>, ApiError> {
    let name = name_of(&name)?;
    Ok(carry_out(&write, |all, _| plan::promote(all, &name)).await?)
}

pub(in crate::http) async fn remove(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<MemberChange>, ApiError> {
    let name = name_of(&name)?;
    Ok(carry_out(&write, |all, state| plan::remove(all, &name, was_removed(state, &name))).await?)
}

pub(in crate::http) async fn replace(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<MemberChange>, ApiError> {
    let old = name_of(&name)?;
    let ReplaceRequest { with } = write.read()?;
    Ok(carry_out(&write, |all, state| plan::replace(all, &old, &with, was_removed(state, &old))).await?)
}

/// Plans on the leader's view, proposes the change, and waits until the membership has followed.
async fn carry_out(
    write: &Write,
    plan: impl Fn(&[MemberInfo], &State) -> Result<Plan, Problem>,
) -> Result<ApiResponse<MemberChange>, Problem> {
    let app = &write.app;
    let (state, _) = app.read(&write.caller, WRITE, Consistency::Linearizable).await?;
    let all = app.node.members(write.caller.deadline).await?;
    let voters = voters(&all);
    if !state.members.is_empty() && state.voters() != voters {
        return Err(Problem::new(Code::MemberUnfit, "another change of the members is under way")
            .help("Repeat in a moment; see ipamctl cluster members."));
    }
    let Plan { promote, remove, mut change } = plan(&all, &state)?;
    if write.dry_run || !change.changes {
        return Ok(ApiResponse::new(change, state.revision()));
    }
    let mut wanted = voters.clone();
    wanted.extend(&promote);
    wanted.retain(|id| !remove.contains(id));
    wanted.sort_unstable();
    let known = app.node.known_members();
    let action = Action::ChangeMembers(ChangeMembers { promote, remove: remove.clone(), voters, known });
    let applied = write.propose(action).await?;
    let so = |all: &[MemberInfo]| {
        self::voters(all) == wanted && !all.iter().any(|member| remove.contains(&member.id))
    };
    while !change.done && Instant::now() + ANSWERING < write.caller.deadline {
        // The change is decided. A failed query of the members is repeated.
        let seen = app.node.members(write.caller.deadline).await;
        change.done = seen.is_ok_and(|all| so(&all));
        if !change.done {
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(ApiResponse::new(change, applied.revision))
}

fn voters(all: &[MemberInfo]) -> Vec<u64> {
    let mut ids: Vec<u64> = all.iter().filter(|member| member.votes()).map(|member| member.id).collect();
    ids.sort_unstable();
    ids
}

/// True if a member of that name was removed.
fn was_removed(state: &State, name: &Name) -> bool {
    state.members.iter().any(|(_, row)| row.name == *name && row.standing == MemberStanding::Removed)
}

fn name_of(name: &str) -> Result<Name, Problem> {
    in_path("member", name, Name::new)
}
