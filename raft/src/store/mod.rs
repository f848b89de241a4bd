//! Data of a member on disk: log, rows, snapshot, and the marker of their positions.
//!
//! Log and snapshot are authoritative. The rows make a start quick, and are discarded on any doubt. The
//! marker records how much of log and rows must exist, so that lost data never counts as data that was never
//! written.
//!
//! **Invariant:** nothing here knows peers, clients or elections; all disk work is done on threads of its
//! own.

mod backup;
mod directory;
#[cfg(feature = "testing")]
pub mod fuzzing;
mod journal;
mod log;
mod open;
mod rows;
mod snapshot;
#[cfg(feature = "testing")]
mod spoil;
mod start_source;
mod state;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::sample::NOWHERE;

pub(crate) use backup::BackupSource;
pub use backup::{Backup, Recovered, RestoreError, Restored, Survivor, restore};
pub use directory::{DirLock, DiskLimits, DiskSpace, FreeSpace, Identity, StoreError, lock_dir};
pub(crate) use directory::{Headroom, Quarantine, StoreCounters, StoreFailure, replace};
pub(crate) use journal::Journal;
pub use journal::{
    DamagedFile, EventFilter, EventPage, EventQuery, JournalError, JournalReport, check_journal,
};
pub(crate) use log::{EntrySizes, LogStore};
pub(crate) use open::{Closer, open_with};
#[cfg(test)]
pub(crate) use open::{Store, open};
pub(crate) use snapshot::{IncomingSnapshot, SnapshotFile};
#[cfg(feature = "testing")]
pub use spoil::{
    BREAKING_REQUEST, BREAKING_TO_LOAD, BREAKING_TO_SEND, BREAKING_TO_WRITE, break_if_asked,
    through_a_snapshot,
};
pub(crate) use state::{Checkpoint, MachineStore, SharedState, Source, blocking};
