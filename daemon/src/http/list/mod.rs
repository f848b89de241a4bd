//! Lists: filtered, sorted, cut down to some fields, and read page by page from one state.

mod cursor;
mod field;
mod kept;
mod page;
mod query;
mod test;

use axum::http::Uri;
use ipam_api::access::{Target, Verb};
use ipam_api::address::AddressRange;
use ipam_api::resource::{Labels, Page};
use ipam_api::{Code, Problem};
use ipam_raft::machine::State;
use serde::Serialize;

use self::cursor::Cursor;
pub(super) use self::field::{Field, Holds};
pub(crate) use self::kept::Kept;
pub(super) use self::page::Item;
use self::query::ListQuery;
pub(super) use self::query::Test;
pub(super) use self::test::without;
use super::App;
use super::asker::Asker;
use super::reply::{Refused, Shown};

/// For fuzz targets: whether a list takes this query.
#[cfg(feature = "fuzzing")]
pub(super) fn takes(uri: &Uri, shape: &'static Shape) -> bool {
    ListQuery::read(uri, shape).is_ok()
}

/// For fuzz targets: a cursor, read and written again.
#[cfg(feature = "fuzzing")]
pub(super) fn cursor_again(text: &str) -> Option<String> {
    Cursor::decode(text).ok().map(Cursor::encode)
}

/// What can be asked of a list.
#[derive(Debug)]
pub(super) struct Shape {
    /// Where it is.
    pub(super) path: &'static str,
    /// What it can be filtered and sorted by.
    pub(super) fields: &'static [Field],
    /// What can be shown of an item by itself.
    pub(super) shown: &'static [&'static str],
    /// Its items have labels.
    pub(super) labelled: bool,
    /// Its items are about addresses.
    pub(super) addressed: bool,
}

impl Shape {
    /// The names of its parameters.
    pub(super) fn parameters(&self) -> Vec<&'static str> {
        let mut names = query::COMMON.to_vec();
        names.extend(self.labelled.then_some("labels"));
        names.extend(self.addressed.then_some(["contains", "within"]).into_iter().flatten());
        names.extend(self.fields.iter().map(|field| field.name));
        names
    }
}

/// Something that can be listed.
pub(super) trait Listed: Send + Sync + 'static {
    /// An item as JSON has it.
    type Item: Serialize + Send;
    /// What can be asked.
    const SHAPE: &'static Shape;

    /// What it is called in the table of roles.
    fn target() -> Target;
    /// How many items there are.
    fn total(state: &State) -> usize;
    /// The ids of those behind `after`, in the list's own order. None, if there never was such an id.
    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>>;
    /// The only ids that can fit, where an index knows: in the list's own order.
    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>>;
    /// An item.
    fn item(state: &State, id: u64) -> Option<Self::Item>;
    /// Its labels.
    fn labels(item: &Self::Item) -> Option<&Labels>;
    /// The addresses that it is about.
    fn ranges(item: &Self::Item) -> Vec<AddressRange>;
}

/// One page.
pub(super) async fn list<L: Listed>(
    app: &App,
    asker: &Asker,
    uri: &Uri,
) -> Result<Shown<Page<Item<L::Item>>>, Refused> {
    let query = ListQuery::read(uri, L::SHAPE)?;
    let deed = (Verb::Read, L::target());
    let (state, stale_ms) = match query.cursor {
        None => app.read(asker, deed, query.freshness).await?,
        Some(cursor) => {
            app.who(asker).await?.check(deed)?;
            (app.at(asker, cursor).await?, None)
        }
    };
    // A filter looks at everything there is, and others wait for this thread.
    let paged = tokio::task::spawn_blocking(move || {
        let page = page::page::<L>(&state, &query);
        (state, page)
    });
    let (state, page) =
        paged.await.map_err(|_| Problem::new(Code::Internal, "the list has ended without an answer"))?;
    let page = page?;
    if page.next.is_some() {
        app.lists.keep(&state);
    }
    Ok(Shown { stale_ms, ..Shown::new(page, state.revision()) })
}

impl App {
    /// The state that a cursor is from: kept, or still the present one.
    async fn at(&self, asker: &Asker, cursor: Cursor) -> Result<State, Problem> {
        if let Some(state) = self.lists.at(cursor.revision) {
            return Ok(state);
        }
        // Another member gave the cursor, and nothing may have changed since.
        let here = self.node.reached(cursor.revision, asker.deadline).await.ok();
        here.filter(|state| state.revision() == cursor.revision).ok_or_else(|| {
            let detail = format!("the state at revision {} is not kept here any more", cursor.revision);
            Problem::new(Code::CursorExpired, detail)
                .help("Begin the list again without a cursor, and ask the same member for all pages.")
        })
    }
}
