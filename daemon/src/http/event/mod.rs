//! Events: pages, streams, and the history of one address.

pub(super) mod history;
mod item;
pub(super) mod pages;
pub(super) mod query;
mod stream;
