//! A request and its response: caller, query, change, limits, and the common parts of all responses.

mod app;
mod body;
pub(super) mod caller;
mod in_flight;
mod local;
pub(super) mod merge_patch;
mod notes;
mod peer;
pub(super) mod propose;
mod query;
mod read;
pub(super) mod response;
mod snapshots;
mod trace;
mod trial;
mod write;

pub use self::app::App;
pub(super) use self::body::TimedBody;
pub(super) use self::caller::{Caller, Identity, Offer};
pub(super) use self::in_flight::Flight;
pub use self::local::LocalServer;
pub(super) use self::notes::Notes;
pub use self::peer::{ClientName, Peer};
pub(super) use self::propose::Proposed;
pub(super) use self::query::{
    AddressQuery, Consistency, DeleteQuery, ExplainQuery, Freshness, in_path, page_limit,
};
#[cfg(feature = "testing")]
pub(super) use self::query::{Asked, NoQuery, ReadQuery, WriteQuery};
pub(super) use self::read::Read;
pub(super) use self::response::{ApiError, ApiResponse};
pub(super) use self::write::Write;
