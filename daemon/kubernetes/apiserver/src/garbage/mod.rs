//! Garbage collection: dependents of owners, and contents of namespaces.
//!
//! The real server collects in the background. Here, a write returns after the collection.

mod contents;
mod owners;
mod removal;

pub(crate) use self::owners::{collect_orphan, orphan, release_owners};
pub(crate) use self::removal::{begin, remove};
