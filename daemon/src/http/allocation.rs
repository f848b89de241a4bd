//! `/v1/allocations`: give, list, release.

use axum::Router;
use axum::extract::{Path, State as AppState};
use axum::http::StatusCode;
use axum::routing::get;
use ipam_api::access::{Target, Verb};
use ipam_api::name::shown;
use ipam_api::request::{AllocateRequest, Allocated, InterfaceRequest, Released};
use ipam_api::resource::{Allocation, Lifecycle, Page};
use ipam_api::{Code, Problem};
use ipam_raft::machine::command::{Allocate, InterfaceWish, Text, Via};
use ipam_raft::machine::{Action, Answer};

use super::App;
use super::asker::Asker;
use super::convert::{allocation, interface, started};
use super::endpoint::released;
use super::query::{Asked, ListQuery, NoQuery, ReadQuery};
use super::reply::{Refused, Shown};
use super::write::Write;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/allocations", get(list).post(allocate))
        .route("/v1/allocations/{id}", get(show).delete(release))
}

async fn allocate(
    AppState(app): AppState<App>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<Allocated>, Refused> {
    let request: AllocateRequest = write.read()?;
    let endpoint = request.endpoint.clone();
    let via = if request.attachment.is_some() { Via::Cni } else { Via::Http };
    let applied = app.propose(&write, via, Action::Allocate(wish(request))).await?;
    let Answer::Allocated { repeated, interfaces } = applied.answer else {
        return Err(Problem::new(Code::Internal, "the machine gave another answer than was asked for").into());
    };
    app.metrics.allocated(&interfaces, repeated);
    let interfaces = interfaces.iter().map(interface).collect();
    let body = Allocated { endpoint, interfaces, repeated, revision: applied.revision };
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(Shown { status, ..Shown::new(body, applied.revision) })
}

fn wish(request: AllocateRequest) -> Allocate {
    let otherwise = if request.attachment.is_some() { Lifecycle::Attached } else { Lifecycle::Held };
    Allocate {
        endpoint: request.endpoint,
        uid: request.uid.map(Text::from),
        node: request.node,
        attachment: request.attachment,
        lifecycle: request.lifecycle.unwrap_or(otherwise),
        interfaces: request.interfaces.into_iter().map(interface_wish).collect(),
        started: request.started.map(started),
    }
}

fn interface_wish(request: InterfaceRequest) -> InterfaceWish {
    let InterfaceRequest { name, ipv4_pools, ipv6_pools, addresses, mac } = request;
    let addresses = addresses.into_iter().map(|address| address.to_canonical()).collect();
    InterfaceWish { name, ipv4_pools, ipv6_pools, addresses, mac: mac.map(Text::from) }
}

async fn list(
    AppState(app): AppState<App>,
    asker: Asker,
    Asked(query): Asked<ListQuery>,
) -> Result<Shown<Page<Allocation>>, Refused> {
    let (limit, after) = (query.limit()?, query.after::<u64>()?.unwrap_or(0));
    let (state, stale_ms) = app.read(&asker, (Verb::Read, Target::Allocation), query.consistency).await?;
    let mut rows = state.allocations.iter_after(after);
    let mut items = Vec::new();
    let mut last = None;
    for (id, row) in rows.by_ref().take(limit) {
        items.extend(allocation(&state, id, row));
        last = Some(id.to_string());
    }
    let next = rows.next().and(last);
    let revision = state.revision();
    Ok(Shown { stale_ms, ..Shown::new(Page { items, revision, next }, revision) })
}

async fn show(
    AppState(app): AppState<App>,
    asker: Asker,
    Path(id): Path<String>,
    Asked(query): Asked<ReadQuery>,
) -> Result<Shown<Allocation>, Refused> {
    let id = number(&id)?;
    let (state, stale_ms) = app.read(&asker, (Verb::Read, Target::Allocation), query).await?;
    let found = state.allocations.get(id).and_then(|row| allocation(&state, id, row));
    let found =
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("allocation {id} does not exist")))?;
    Ok(Shown { stale_ms, ..Shown::new(found, state.revision()) })
}

async fn release(
    AppState(app): AppState<App>,
    Path(id): Path<String>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<Released>, Refused> {
    let action = Action::ReleaseAllocation { id: number(&id)? };
    let applied = app.propose(&write, Via::Http, action).await?;
    Ok(released(applied.answer, applied.revision))
}

fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| Problem::new(Code::NotFound, format!("{} is no allocation's id", shown(id))))
}
