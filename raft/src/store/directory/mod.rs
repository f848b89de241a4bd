//! The data directory: files that all parts share, and what ties a directory to a member.
//!
//! **Invariant:** knows nothing of log, rows, snapshots and journal.

pub(super) mod background;
mod counters;
pub(super) mod disk;
mod durable;
mod error;
mod failure;
pub(super) mod frame;
mod free_space;
mod identity;
pub(super) mod json_file;
mod lock;
mod marker;
mod quarantine;
#[cfg(test)]
mod tests;
pub(super) mod truncating;

pub(crate) use counters::StoreCounters;
pub(crate) use disk::replace;
pub(super) use durable::Durable;
pub use error::StoreError;
pub(crate) use failure::StoreFailure;
pub(super) use failure::{fail, report, unwind};
pub(crate) use free_space::Headroom;
pub(super) use free_space::START_BYTES;
pub use free_space::{DiskLimits, DiskSpace, FreeSpace};
pub use identity::Identity;
pub use lock::{DirLock, lock_dir};
pub(super) use marker::{LogMark, Marker};
pub(crate) use quarantine::Quarantine;
