//! Workload `reads`: linearizable and stale reads at all members, lists by pages, and readers of events.

use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::client::Call;
use ipam_api::event::{Event, EventPage};
use ipam_api::resource::{Allocation, Page};
use serde_json::{Value as Json, json};

use super::holdings::{Holdings, is_passing};
use super::requests::{Wanted, endpoint_of, grant_of};
use super::resources::{Space, make_pool, make_subnet};
use super::session::add_detail;
use super::{At, Server, Session, Workload};
use crate::history::{Function, Type, Value};

const NAME: &str = "reads";
const SPACE: Space = Space(11);
/// Sessions: one writes, one follows streams, the others read.
const SESSIONS: usize = 4;
/// Addresses that are read.
const ADDRESSES: usize = 24;
const HELD_MAX: usize = 16;
/// Items of a page of a list: a full pool has several.
const LIST_PAGE: usize = 7;
/// Events of a page.
const EVENT_PAGE: usize = 200;
/// Number of event ids that one operation records; the operation ends before it exceeds this number.
const IDS_MAX: usize = 2_000;
/// Longest time of one operation at a stream.
const FOLLOW_MS: (usize, usize) = (300, 1_500);
/// Timeout of one page.
const PAGE: Duration = Duration::from_secs(2);

/// Readers.
pub(super) struct Reads;

impl Workload for Reads {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "linearizable and stale reads at all members, lists by pages, and events by pages and streams"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Read, Function::List, Function::Events, Function::Allocate]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 24)]})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        match session.number {
            0 => write(session).boxed(),
            1 => follow(session).boxed(),
            _ => read(session).boxed(),
        }
    }
}

async fn write(mut session: Session) {
    let mut holdings = Holdings::default();
    let mut count = 0_u64;
    while session.works() {
        match session.random.below(10) {
            0 => holdings.clear_doubt(&mut session).await,
            1..=5 if holdings.len() < HELD_MAX => {
                count += 1;
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                let _ = holdings.allocate(&mut session, &Wanted::one(endpoint, NAME)).await;
            }
            6..=7 => {
                let address = address(&mut session);
                let at = session.any_member();
                let _ = session.read_address(at, &address, false).await;
            }
            _ => holdings.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

async fn read(mut session: Session) {
    let filter = session.chance(50).then(|| json!({"pool": NAME}));
    let mut position = None;
    while session.works() {
        match session.random.below(12) {
            0 => list(&mut session).await,
            1 => page(&mut session, &mut position, filter.as_ref()).await,
            2 => list_at_least(&mut session).await,
            _ => {
                let (address, is_stale) = (address(&mut session), session.chance(40));
                // Stale reads use one member.
                let at = if is_stale { one_member(&mut session) } else { session.any_member() };
                let _ = session.read_address(at, &address, is_stale).await;
            }
        }
        session.rest().await;
    }
}

fn address(session: &mut Session) -> String {
    SPACE.ipv4(0, u8::try_from(1 + session.random.below(ADDRESSES)).unwrap_or(1)).to_string()
}

fn one_member(session: &mut Session) -> At {
    At::Member(session.random.below(session.members()))
}

/// Lists all allocations of the pool, page by page.
async fn list(session: &mut Session) {
    let at = one_member(session);
    let is_stale = session.chance(30);
    let consistency = if is_stale { "stale" } else { "linearizable" };
    let path = format!("/v1/allocations?pool={NAME}&limit={LIST_PAGE}&consistency={consistency}");
    read_pages(session, at, is_stale, path, json!({})).await;
}

/// Lists in one page the state of a member once it has applied a revision that another member has shown. The
/// list is a stale read with a lower bound.
async fn list_at_least(session: &mut Session) {
    let (first, second) = (one_member(session), one_member(session));
    let Ok(seen) = session.look::<Page<Json>>(first, Call::get("/v1/allocations?limit=1")).await else {
        return;
    };
    let least = seen.revision;
    let path = format!("/v1/allocations?pool={NAME}&limit=1000&at_least_revision={least}");
    read_pages(session, second, true, path, json!({"at_least_revision": least})).await;
}

/// Reads all pages of a list. `detail.revisions` has the revision of each page: the pages of one list are of
/// one state.
async fn read_pages(session: &mut Session, at: At, is_stale: bool, path: String, detail: Json) {
    let (member, server) = session.server(at);
    let value = Value { member, is_stale, pools: vec![NAME.to_owned()], detail, ..Value::default() };
    session
        .record(Function::List, value, async |value: &mut Value| {
            let mut revisions = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let mut call = Call::get(path.clone()).within(PAGE);
                if let Some(cursor) = &cursor {
                    call = call.query("cursor", cursor);
                }
                let page = server.send(call).await.and_then(|answer| answer.read::<Page<Allocation>>());
                let page = match page {
                    Ok(page) => page,
                    Err(problem) => {
                        value.error = Some(problem.code.to_string());
                        value.grants.clear();
                        return (Type::Fail, ());
                    }
                };
                value.grants.extend(page.items.iter().map(grant_of));
                revisions.push(page.revision);
                cursor = page.next;
                if cursor.is_none() {
                    value.revision = revisions.last().copied();
                    add_detail(value, "revisions", revisions.into());
                    return (Type::Ok, ());
                }
            }
        })
        .await;
}

/// Reads the next pages of events after the last one.
async fn page(session: &mut Session, position: &mut Option<String>, filter: Option<&Json>) {
    let at = session.any_member();
    let Some(from) = begin(session, position).await else { return };
    let (member, server) = session.server(at);
    let value = Value { member, detail: arguments(&from, filter, "page"), ..Value::default() };
    let path = events_path(filter);
    let last = session
        .record(Function::Events, value, async |value: &mut Value| {
            let mut ids = Vec::new();
            let mut after = from;
            let (mut revision, mut is_lost) = (0, false);
            while ids.len() + EVENT_PAGE <= IDS_MAX {
                let call = Call::get(path.clone()).query("limit", &EVENT_PAGE.to_string());
                let call = call.query("after", &after).within(PAGE);
                let page = server.send(call).await.and_then(|answer| answer.read::<EventPage>());
                let page = match page {
                    Ok(page) => page,
                    // The previous pages are complete.
                    Err(problem) => {
                        value.error = Some(problem.code.to_string());
                        is_lost = !is_passing(&problem);
                        break;
                    }
                };
                revision = page.revision;
                ids.extend(page.items.iter().map(Event::id));
                if let Some(last) = page.items.last() {
                    after = last.id();
                }
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            let failed = value.error.is_some() && ids.is_empty();
            value.revision = (revision > 0).then_some(revision);
            results(value, &after, ids);
            (if failed { Type::Fail } else { Type::Ok }, (!is_lost).then_some(after))
        })
        .await;
    *position = last;
}

/// Follows streams of events, resumed after the last event at each operation.
async fn follow(mut session: Session) {
    let mut position: Option<String> = None;
    while session.works() {
        let Some(from) = begin(&mut session, &position).await else {
            session.rest().await;
            continue;
        };
        let time = session.between(FOLLOW_MS.0, FOLLOW_MS.1);
        let time = Duration::from_millis(u64::try_from(time).unwrap_or_default());
        let at = if session.chance(50) { At::All } else { one_member(&mut session) };
        let filter = session.chance(25).then(|| json!({"kind": "address"}));
        let (member, server) = session.server(at);
        let value = Value { member, detail: arguments(&from, filter.as_ref(), "stream"), ..Value::default() };
        let path = events_path(filter.as_ref());
        let last = session
            .record(Function::Events, value, async |value: &mut Value| {
                let mut ids = Vec::new();
                let mut beyond = 0_u64;
                let mut seen = |event: Event| {
                    if ids.len() < IDS_MAX {
                        ids.push(event.id());
                    } else {
                        beyond += 1;
                    }
                };
                let followed = server.follow(&path, from.clone(), time, &mut seen).await;
                let last = ids.last().cloned().unwrap_or_else(|| from.clone());
                let after = match &followed {
                    Ok(position) if beyond == 0 => position.clone(),
                    _ => last,
                };
                if let Err(problem) = &followed {
                    value.error = Some(problem.code.to_string());
                }
                let kind = if followed.is_err() && ids.is_empty() { Type::Fail } else { Type::Ok };
                results(value, &after, ids);
                // A restored cluster may not know the position.
                let is_lost = followed.is_err_and(|problem| !is_passing(&problem));
                (kind, (!is_lost).then_some(after))
            })
            .await;
        // The position of a filtered stream moves past events that the filter excludes.
        position = last;
        session.rest().await;
    }
}

/// Position of the reader, or the present revision at its begin.
async fn begin(session: &mut Session, position: &Option<String>) -> Option<String> {
    if position.is_some() {
        return position.clone();
    }
    let at = session.any_member();
    let page = session.look::<Page<Json>>(at, Call::get("/v1/allocations?limit=1")).await.ok()?;
    Some(page.revision.to_string())
}

fn events_path(filter: Option<&Json>) -> String {
    let fields = filter.and_then(Json::as_object).into_iter().flatten();
    fields.fold("/v1/events".to_owned(), |path, (name, value)| {
        ipam_api::client::with_query(&path, name, value.as_str().unwrap_or_default())
    })
}

/// Arguments of a read of events: `from` is the position after which it begins, an event or a revision.
fn arguments(from: &str, filter: Option<&Json>, source: &str) -> Json {
    match filter {
        Some(filter) => json!({"from": from, "source": source, "filter": filter}),
        None => json!({"from": from, "source": source}),
    }
}

/// Results: `ids` has all events after `from` up to the position `to`.
fn results(value: &mut Value, to: &str, ids: Vec<String>) {
    add_detail(value, "to", to.into());
    add_detail(value, "count", ids.len().into());
    add_detail(value, "ids", ids.into());
}
