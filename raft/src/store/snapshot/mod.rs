//! Snapshots: the whole state at one log entry in a single file, and the directory of these files.

mod directory;
mod format;
mod instant;
#[cfg(test)]
mod tests;

pub(crate) use directory::{IncomingSnapshot, SnapshotFile};
pub(super) use directory::{Snapshot, SnapshotDir, path_in};
#[cfg(feature = "testing")]
pub(super) use format::{Header, verify};
pub(super) use format::{Unwritable, load, write};
pub(super) use instant::Instant;
