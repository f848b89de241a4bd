//! `/v1/endpoints`: who holds what.

use axum::Router;
use axum::extract::{Path, State as AppState};
use axum::routing::get;
use ipam_api::access::{Target, Verb};
use ipam_api::request::Released;
use ipam_api::resource::{Endpoint, EndpointKey, EndpointStatus, Page, Resource};
use ipam_api::{Code, Problem};
use ipam_raft::machine::command::Via;
use ipam_raft::machine::{Action, Answer, State};

use super::App;
use super::asker::Asker;
use super::convert::{interface, meta};
use super::query::{Asked, ListQuery, NoQuery, ReadQuery};
use super::reply::{Refused, Shown};
use super::write::Write;

type View = Resource<Endpoint, EndpointStatus>;

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/endpoints", get(list))
        .route("/v1/endpoints/{kind}/{realm}/{namespace}/{name}", get(show).delete(release))
}

async fn list(
    AppState(app): AppState<App>,
    asker: Asker,
    Asked(query): Asked<ListQuery>,
) -> Result<Shown<Page<View>>, Refused> {
    let (limit, after) = (query.limit()?, query.after::<EndpointKey>()?);
    let (state, stale_ms) = app.read(&asker, (Verb::Read, Target::Endpoint), query.consistency).await?;
    let mut items: Vec<View> = Vec::new();
    let mut next = None;
    for (key, id) in state.endpoints_after(after.as_ref()) {
        let last = items.last().map(|item| &item.intention.key);
        // Incarnations of one endpoint stay on one page.
        if items.len() >= limit && last != Some(key) {
            next = last.map(ToString::to_string);
            break;
        }
        items.extend(view(&state, id));
    }
    let revision = state.revision();
    Ok(Shown { stale_ms, ..Shown::new(Page { items, revision, next }, revision) })
}

async fn show(
    AppState(app): AppState<App>,
    asker: Asker,
    Path(path): Path<(String, String, String, String)>,
    Asked(query): Asked<ReadQuery>,
) -> Result<Shown<View>, Refused> {
    let key = key(path)?;
    let (state, stale_ms) = app.read(&asker, (Verb::Read, Target::Endpoint), query).await?;
    let newest = state.incarnations(&key).next_back().and_then(|id| view(&state, id));
    let view = newest.ok_or_else(|| Problem::new(Code::NotFound, format!("endpoint {key} holds nothing")))?;
    Ok(Shown { stale_ms, etag: Some(view.meta.revision), ..Shown::new(view, state.revision()) })
}

async fn release(
    AppState(app): AppState<App>,
    Path(path): Path<(String, String, String, String)>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<Released>, Refused> {
    let action = Action::ReleaseEndpoint { key: key(path)? };
    let applied = app.propose(&write, Via::Http, action).await?;
    Ok(released(applied.answer, applied.revision))
}

/// The answer to any release.
pub(super) fn released(answer: Answer, revision: u64) -> Shown<Released> {
    let addresses = match answer {
        Answer::Released { addresses } => addresses,
        _ => Vec::new(),
    };
    Shown::new(Released { addresses, revision }, revision)
}

fn key((kind, realm, namespace, name): (String, String, String, String)) -> Result<EndpointKey, Problem> {
    let key = format!("{kind}/{realm}/{namespace}/{name}").parse();
    key.map_err(|problem: Problem| Problem::new(Code::NotFound, problem.detail))
}

fn view(state: &State, id: u64) -> Option<View> {
    let row = state.endpoints.get(id)?;
    Some(Resource {
        intention: Endpoint { key: row.key.clone(), uid: row.uid.as_ref().map(ToString::to_string) },
        meta: meta(&row.meta),
        status: EndpointStatus { interfaces: state.given(&row.allocations).iter().map(interface).collect() },
    })
}
