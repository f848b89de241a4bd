//! What networks, subnets, pools and reservations have in common: the same six requests.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State as AppState};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use ipam_api::access::Verb;
use ipam_api::name::{Name, shown};
use ipam_api::resource::{Page, Resource};
use ipam_api::{Code, Problem, strict};
use ipam_raft::machine::command::{Delete, Expect, Kind, Via};
use ipam_raft::machine::{Action, Answer, State};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::App;
use super::ask::expect;
use super::asker::Asker;
use super::query::{Asked, DeleteQuery, ListQuery, NoQuery, ReadQuery};
use super::reply::{Refused, Shown};
use super::write::Write;

/// One kind of named resource, between HTTP and the machine.
pub(super) trait Kinded: Send + Sync + 'static {
    /// Its plural in paths.
    const PATH: &'static str;
    /// Its kind in the machine.
    const KIND: Kind;
    /// The intention as JSON has it.
    type Intention: Serialize + DeserializeOwned + Send;
    /// The status as JSON has it.
    type Status: Serialize + Send;

    /// The name in an intention.
    fn name(intention: &Self::Intention) -> &Name;
    /// The intention as the log has it.
    fn put(intention: Self::Intention, expect: Expect) -> Action;
    /// The resource as people read it.
    fn show(state: &State, id: u64) -> Option<Resource<Self::Intention, Self::Status>>;
}

type View<K> = Shown<Resource<<K as Kinded>::Intention, <K as Kinded>::Status>>;
type List<K> = Shown<Page<Resource<<K as Kinded>::Intention, <K as Kinded>::Status>>>;

pub(super) fn routes<K: Kinded>() -> Router<App> {
    let collection = format!("/v1/{}", K::PATH);
    let item = format!("/v1/{}/{{name}}", K::PATH);
    Router::new()
        .route(&collection, get(list::<K>).post(create::<K>))
        .route(&item, get(show::<K>).put(put::<K>).delete(delete::<K>))
}

async fn list<K: Kinded>(
    AppState(app): AppState<App>,
    asker: Asker,
    Asked(query): Asked<ListQuery>,
) -> Result<List<K>, Refused> {
    let (limit, after) = (query.limit()?, query.after::<Name>()?);
    let (state, stale_ms) = app.read(&asker, (Verb::Read, K::KIND.target()), query.consistency).await?;
    let mut names = state.names(K::KIND, after.as_ref());
    let mut items = Vec::new();
    let mut last = None;
    for (name, id) in names.by_ref().take(limit) {
        items.extend(K::show(&state, id));
        last = Some(name.to_string());
    }
    let next = names.next().and(last);
    let revision = state.revision();
    Ok(Shown { stale_ms, ..Shown::new(Page { items, revision, next }, revision) })
}

async fn show<K: Kinded>(
    AppState(app): AppState<App>,
    asker: Asker,
    Path(name): Path<String>,
    Asked(query): Asked<ReadQuery>,
) -> Result<View<K>, Refused> {
    let name = name_in_path::<K>(&name)?;
    let (state, stale_ms) = app.read(&asker, (Verb::Read, K::KIND.target()), query.consistency).await?;
    let view = view::<K>(&state, &name).ok_or_else(|| unknown::<K>(&state, &name))?;
    Ok(Shown { stale_ms, ..view })
}

async fn create<K: Kinded>(
    AppState(app): AppState<App>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<View<K>, Refused> {
    let intention: K::Intention = write.read()?;
    store::<K>(&app, &write, intention, Expect::Absent).await
}

async fn put<K: Kinded>(
    AppState(app): AppState<App>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<View<K>, Refused> {
    let intention: K::Intention = write.read()?;
    if K::name(&intention).as_str() != name {
        let detail = format!("the body names {} and the path {}", K::name(&intention), shown(&name));
        return Err(Problem::new(Code::InvalidField, detail).into());
    }
    let expect = match expect(&headers)? {
        Expect::Anything => revision_in(&write.body).map_or(Expect::Anything, Expect::Revision),
        said => said,
    };
    store::<K>(&app, &write, intention, expect).await
}

/// What was shown and comes back says in `meta.revision` what it was made from.
fn revision_in(body: &Bytes) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Shown {
        meta: Option<Meta>,
    }
    #[derive(serde::Deserialize)]
    struct Meta {
        revision: Option<u64>,
    }
    serde_json::from_slice::<Shown>(body).ok()?.meta?.revision
}

async fn store<K: Kinded>(
    app: &App,
    write: &Write,
    intention: K::Intention,
    expect: Expect,
) -> Result<View<K>, Refused> {
    let name = K::name(&intention).clone();
    let applied = app.propose(write, Via::Http, K::put(intention, expect)).await?;
    let created = matches!(applied.answer, Answer::Stored { created: true, .. });
    let (state, _) = app
        .read(&write.asker, (Verb::Read, K::KIND.target()), super::query::Consistency::Linearizable)
        .await?;
    let view = view::<K>(&state, &name).ok_or_else(|| unknown::<K>(&state, &name))?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let location = created.then(|| format!("/v1/{}/{name}", K::PATH));
    Ok(Shown { status, location, ..view })
}

async fn delete<K: Kinded>(
    AppState(app): AppState<App>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(query): Asked<DeleteQuery>,
    write: Write,
) -> Result<axum::response::Response, Refused> {
    use axum::response::IntoResponse;
    let name = name_in_path::<K>(&name)?;
    let delete = Delete { kind: K::KIND, name: name.clone(), expect: expect(&headers)?, drain: query.drain };
    let applied = app.propose(&write, Via::Http, Action::Delete(delete)).await?;
    if !matches!(applied.answer, Answer::Draining { .. }) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (state, _) = app
        .read(&write.asker, (Verb::Read, K::KIND.target()), super::query::Consistency::Linearizable)
        .await?;
    Ok(match view::<K>(&state, &name) {
        Some(view) => Shown { status: StatusCode::ACCEPTED, ..view }.into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

fn view<K: Kinded>(state: &State, name: &Name) -> Option<View<K>> {
    let resource = K::show(state, state.id_of(K::KIND, name)?)?;
    let etag = Some(resource.meta.revision);
    Some(Shown { etag, ..Shown::new(resource, state.revision()) })
}

/// A name in a path: one that breaks the rule of names can't exist.
fn name_in_path<K: Kinded>(name: &str) -> Result<Name, Problem> {
    Name::new(name).map_err(|problem| {
        Problem::new(
            Code::NotFound,
            format!("no {} can be called {}: {}", K::KIND, shown(name), problem.detail),
        )
    })
}

fn unknown<K: Kinded>(state: &State, name: &Name) -> Problem {
    let mut names = state.names(K::KIND, None).map(|(known, _)| known.as_str());
    let detail = format!("{} {name} does not exist", K::KIND);
    match strict::nearest(name.as_str(), names.by_ref()) {
        Some(near) => Problem::new(Code::NotFound, format!("{detail}; did you mean {near}?")),
        None => Problem::new(Code::NotFound, detail),
    }
}
