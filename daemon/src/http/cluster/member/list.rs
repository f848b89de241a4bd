//! `/v1/cluster/members`: members of the cluster, and its leader.

use ipam_api::access::{Target, Verb};
use ipam_api::cluster::{MemberChange, Members, TransferRequest};
use ipam_raft::node::{MemberInfo, Role};

use super::plan;
use super::plan::{can_lose, needed};
use crate::http::cluster::status::member;
use crate::http::request::{ApiError, ApiResponse, Consistency, Freshness, Read, Write};

pub(super) const WRITE: (Verb, Target) = (Verb::Write, Target::Cluster);

pub(in crate::http) async fn list(read: Read) -> Result<ApiResponse<Members>, ApiError> {
    read.app.check_here(&read.caller, (Verb::Read, Target::Cluster))?;
    let stale = Freshness::from(read.query).consistency == Some(Consistency::Stale);
    // Without a leader this member still knows the others.
    let (all, stale_ms) = match stale {
        true => (read.app.node.status().members, Some(read.app.node.stale().1)),
        false => (read.app.node.members(read.caller.deadline).await?, None),
    };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(shown(all), read.app.node.revision()) })
}

fn shown(all: Vec<MemberInfo>) -> Members {
    let voters: Vec<&MemberInfo> = all.iter().filter(|member| member.votes()).collect();
    Members {
        leader: all.iter().find(|member| member.role == Role::Leader).map(|member| member.name.clone()),
        voters: voters.len() as u64,
        needed: needed(voters.len()),
        can_lose: can_lose(&voters),
        items: all.into_iter().map(member).collect(),
    }
}

pub(in crate::http) async fn transfer_leader(write: Write) -> Result<ApiResponse<MemberChange>, ApiError> {
    write.app.who(&write.caller).await?.check(WRITE)?;
    let request: TransferRequest = write.read()?;
    let all = write.app.node.members(write.caller.deadline).await?;
    let (heir, mut change) = plan::transfer(&all, request.to.as_ref())?;
    if change.changes && !write.dry_run {
        write.app.node.hand_over(heir, write.caller.deadline).await?;
        change.done = true;
    }
    Ok(ApiResponse::new(change, write.app.node.revision()))
}
