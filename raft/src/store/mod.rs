//! What a member keeps on disk: log, rows, snapshot, and the marker that vouches for them.
//!
//! Log and snapshot are the truth. The rows are there to make a start quick, and are thrown away on any doubt.
//! The marker says how much of log and rows must be there, so that something missing is never taken for
//! something that was never written.
//!
//! **Invariant:** nothing here knows peers, clients or elections; all disk work is done on threads of its own.

mod apply_thread;
mod background;
mod backup;
mod begin;
mod behind;
mod checkpoints;
mod counters;
mod disk;
mod doubt;
mod durable;
mod error;
mod frame;
mod freeing;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod headroom;
mod identity;
pub(crate) mod journal;
mod live;
mod loading;
mod lock;
mod log;
mod log_open;
mod log_thread;
mod log_view;
mod machine;
mod marker;
mod note;
mod open;
mod reach;
mod rebuild;
mod recover;
mod restore;
mod rows;
mod shared;
mod snapshot;
mod snapshot_dir;
#[cfg(feature = "spoil")]
mod spoil;
#[cfg(test)]
mod tests;
mod wal;

pub use backup::Backup;
pub(crate) use backup::Source as BackupSource;
pub(crate) use checkpoints::Checkpoint;
pub(crate) use counters::StoreCounters;
pub(crate) use doubt::Doubt;
pub use error::StoreError;
pub(crate) use headroom::Headroom;
pub use headroom::{DiskLimits, DiskSpace, Room};
pub use identity::Identity;
pub(crate) use journal::Journal;
pub use journal::{
    DamagedFile, EventFilter, EventPage, EventQuery, JournalError, JournalReport, check_journal,
};
pub use lock::{DirLock, lock_dir};
pub(crate) use log::LogStore;
pub(crate) use machine::MachineStore;
#[cfg(test)]
pub(crate) use open::open;
pub(crate) use open::{Closer, open_with};
pub(crate) use reach::LogReach;
pub(crate) use rebuild::Source;
pub use recover::{Recovered, Survivor};
pub use restore::{RestoreError, Restored, restore};
pub(crate) use shared::SharedState;
pub(crate) use snapshot_dir::{IncomingSnapshot, SnapshotFile};
#[cfg(feature = "spoil")]
pub use spoil::through_a_snapshot;
