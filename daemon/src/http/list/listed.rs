//! Lists: filtered, sorted, cut down to some fields, and read page by page from one state.

use axum::extract::{Path, State as AppState};
use axum::http::Uri;
use ipam_api::access::{Target, Verb};
use ipam_api::address::AddressRange;
use ipam_api::name::shown;
use ipam_api::resource::{Labels, Page};
use ipam_api::{Code, Problem};
use ipam_machine::State;
use ipam_machine::command::Kind;
use serde::Serialize;

use super::cursor::Cursor;
use super::field::{Field, Row};
use super::page::{self, Item};
use super::query::{self, ListQuery, Test};
use crate::http::request::{ApiError, ApiResponse, App, Caller, Read};

/// True if a list accepts this query, for fuzz targets.
#[cfg(feature = "testing")]
pub(in crate::http) fn takes(uri: &Uri, shape: &'static Shape) -> bool {
    ListQuery::read(uri, shape).is_ok()
}

/// Filters of a query, for tests of lists.
#[cfg(test)]
pub(in crate::http) fn tests_of(uri: &Uri, shape: &'static Shape) -> Result<Vec<Test>, Problem> {
    ListQuery::read(uri, shape).map(|query| query.tests)
}

/// Reads a cursor and writes it again, for fuzz targets.
#[cfg(feature = "testing")]
pub(in crate::http) fn cursor_again(text: &str) -> Option<String> {
    Cursor::decode(text).ok().map(Cursor::encode)
}

/// Parts of an item that all named resources have.
const NAMED: &[Row] = &[
    Row::shown(&["description", "labels", "annotations", "managed_by", "meta"]),
    Row::number("id", "meta.id"),
    Row::number("revision", "meta.revision"),
    Row::text("created_at", "meta.created_at"),
    Row::text("created_by", "meta.created_by"),
    Row::text("updated_at", "meta.updated_at"),
    Row::text("updated_by", "meta.updated_by"),
];

/// Fields, filters and orders of a list.
#[derive(Debug)]
pub(in crate::http) struct Shape {
    /// Path of the list.
    pub(in crate::http) path: &'static str,
    /// Parts of an item.
    pub(in crate::http) own: &'static [Row],
    /// True if the items are named resources, whose common parts follow `own`.
    pub(in crate::http) named: bool,
    /// True if the list has the address filters `contains` and `within`.
    pub(in crate::http) addressed: bool,
}

impl Shape {
    /// Names of the list's query parameters.
    pub(in crate::http) fn parameters(&self) -> Vec<&'static str> {
        let mut names = query::COMMON.to_vec();
        names.extend(self.named.then_some("labels"));
        names.extend(self.addressed.then_some(["contains", "within"]).into_iter().flatten());
        names.extend(self.fields().map(|field| field.name));
        names
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> + Clone + use<> {
        self.own.iter().chain(if self.named { NAMED } else { &[] })
    }

    /// Fields for filters and sort keys.
    pub(in crate::http) fn fields(&self) -> impl Iterator<Item = &'static Field> + Clone + use<> {
        self.rows().filter_map(|row| row.field())
    }

    /// Paths that can be selected for the response.
    pub(in crate::http) fn shown(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.rows().flat_map(Row::paths).copied()
    }
}

/// Kind of items that can be listed.
pub(in crate::http) trait Listable: Send + Sync + 'static {
    /// An item as JSON has it.
    type Item: Serialize + Send;
    /// Fields, filters and orders of the list.
    const SHAPE: &'static Shape;

    /// Target in the table of roles.
    fn target() -> Target;
    /// Number of items.
    fn total(state: &State) -> usize;
    /// Ids after `after`, in the list's own order. None if that id never existed.
    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>>;
    /// Ids of all items that can match, if an index can narrow them down; in the list's own order.
    fn narrowed(_: &State, _: &[Test]) -> Option<Vec<u64>> {
        None
    }
    fn item(state: &State, id: u64) -> Option<Self::Item>;
    fn labels(_: &Self::Item) -> Option<&Labels> {
        None
    }
    /// Addresses of an item, for the filters `contains` and `within`.
    fn ranges(_: &Self::Item) -> Vec<AddressRange> {
        Vec::new()
    }
}

/// Ids of a kind after `after`, in the order of their names. None if that id never existed.
pub(in crate::http) fn ids_by_name(
    state: &State,
    kind: Kind,
    after: Option<u64>,
) -> Option<Box<dyn Iterator<Item = u64> + '_>> {
    let after = match after {
        Some(id) => Some(state.name_of(kind, id)?),
        None => None,
    };
    Some(Box::new(state.names(kind, after.as_ref()).map(|(_, id)| id)))
}

/// Handler of a list: one page.
pub(in crate::http) async fn list<L: Listable>(
    AppState(app): AppState<App>,
    caller: Caller,
    uri: Uri,
) -> Result<ApiResponse<Page<Item<L::Item>>>, ApiError> {
    let query = ListQuery::read(&uri, L::SHAPE)?;
    let permission = (Verb::Read, L::target());
    let (state, stale_ms) = match query.cursor {
        None => app.read(&caller, permission, query.freshness).await?,
        Some(cursor) => {
            app.who(&caller).await?.check(permission)?;
            (app.at(&caller, cursor).await?, None)
        }
    };
    let known = app.who(&caller).await?;
    known.check_lists(L::target())?;
    let holder = caller.slot_holder(&known);
    // A filter may examine all items, which must not block an async thread.
    let node = app.node.clone();
    let paged = ipam_raft::blocking(move || {
        let page = node.guard(|| page::page::<L>(&state, &query));
        (state, page)
    });
    let (state, page) =
        paged.await.map_err(|_| Problem::new(Code::Internal, "the list has ended without an answer"))?;
    let page = page.map_err(Problem::from)??;
    if page.next.is_some() {
        app.lists.keep(&holder, &state);
    }
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(page, state.revision()) })
}

/// Handler of one item of a list whose items are named by ids.
pub(in crate::http) async fn show_by_id<L: Listable>(
    Path(id): Path<String>,
    read: Read,
) -> Result<ApiResponse<L::Item>, ApiError> {
    let target = L::target();
    let id = id_in_path(target, &id)?;
    let (state, stale_ms) = read.state((Verb::Read, target)).await?;
    let found = L::item(&state, id);
    let found = found.ok_or_else(|| Problem::new(Code::NotFound, format!("{target} {id} does not exist")))?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(found, state.revision()) })
}

/// Reads an id in a path.
pub(in crate::http) fn id_in_path(target: Target, id: &str) -> Result<u64, Problem> {
    let none = |_| Problem::new(Code::NotFound, format!("{} is no {target}'s id", shown(id)));
    id.parse().map_err(none)
}

impl App {
    /// Returns the state of a cursor, if it is kept or still the present one.
    async fn at(&self, caller: &Caller, cursor: Cursor) -> Result<State, Problem> {
        if let Some(state) = self.lists.at(cursor.revision) {
            return Ok(state);
        }
        // Another member may have created the cursor. It is usable here if the state has not changed since.
        let here = self.node.reached(cursor.revision, caller.deadline).await.ok();
        here.filter(|state| state.revision() == cursor.revision).ok_or_else(|| {
            let detail = format!("the state at revision {} is not kept here any more", cursor.revision);
            Problem::new(Code::CursorExpired, detail)
                .help("Begin the list again without a cursor, and ask the same member for all pages.")
        })
    }
}
