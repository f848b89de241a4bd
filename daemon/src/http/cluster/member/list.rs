//! `/v1/cluster/members`: who belongs to the cluster, and who leads it.

use axum::Router;
use axum::extract::State as AppState;
use axum::routing::{delete, get, post};
use ipam_api::Problem;
use ipam_api::access::{Target, Verb};
use ipam_api::cluster::{MemberChange, Members, TransferRequest};
use ipam_raft::node::{MemberInfo, Role};

use super::plan::{can_lose, needed};
use super::{change, join, plan};
use crate::http::cluster::status::member;
use crate::http::request::{
    App, Asked, Asker, Consistency, Freshness, NoQuery, ReadQuery, Refused, Shown, Write,
};

pub(super) const WRITE: (Verb, Target) = (Verb::Write, Target::Cluster);

pub(in crate::http) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/cluster/members", get(list).post(join::join))
        .route("/v1/cluster/members/{name}", delete(change::remove))
        .route("/v1/cluster/members/{name}/promote", post(change::promote))
        .route("/v1/cluster/members/{name}/replace", post(change::replace))
        .route("/v1/cluster/transfer-leader", post(transfer_leader))
}

async fn list(
    AppState(app): AppState<App>,
    asker: Asker,
    Asked(query): Asked<ReadQuery>,
) -> Result<Shown<Members>, Refused> {
    app.check_here(&asker, (Verb::Read, Target::Cluster))?;
    let stale = Freshness::from(query).consistency == Some(Consistency::Stale);
    // Without a leader this member still knows who there is.
    let (all, stale_ms) = match stale {
        true => (app.node.status().members, Some(app.node.stale().1)),
        false => (app.node.members(asker.deadline).await.map_err(Problem::from)?, None),
    };
    Ok(Shown { stale_ms, ..Shown::new(shown(all), app.node.revision()) })
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

async fn transfer_leader(
    AppState(app): AppState<App>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<MemberChange>, Refused> {
    app.who(&write.asker).await?.check(WRITE)?;
    let request: TransferRequest = write.read()?;
    let all = app.node.members(write.asker.deadline).await.map_err(Problem::from)?;
    let (heir, mut change) = plan::transfer(&all, request.to.as_ref())?;
    if change.changes && !write.dry_run {
        app.node.hand_over(heir, write.asker.deadline).await.map_err(Problem::from)?;
        change.done = true;
    }
    Ok(Shown::new(change, app.node.revision()))
}
