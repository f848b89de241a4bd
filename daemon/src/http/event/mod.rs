//! Events: pages, streams, and the history of one address.

mod history;
mod item;
pub(super) mod query;
pub(super) mod routes;
mod stream;
