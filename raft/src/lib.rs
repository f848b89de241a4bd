//! The replicated state of ipamd: the deterministic machine, its storage and its peers.
//!
//! Three layers; each depends only on lower ones: [`node`] serves the daemon; `transport` and `store`
//! exchange and persist data; [`ipam_machine`] decides, without access to disk, network or clock.
//!
//! **Invariant:** openraft and sled are named nowhere outside this crate.

pub mod connection_limit;
pub mod durations;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod node;
pub mod progress;
mod rate_limit;
pub mod retry_after;
#[doc(hidden)]
pub mod simulation;
pub mod socket;
mod store;
mod sync;
mod threads;
mod transport;
mod types;

pub use node::{Node, NodeConfig};
pub use simulation::new_id;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use store::{
    BREAKING_REQUEST, BREAKING_TO_LOAD, BREAKING_TO_SEND, BREAKING_TO_WRITE, break_if_asked,
    through_a_snapshot,
};
pub use store::{
    Backup, DamagedFile, DirLock, EventFilter, EventPage, EventQuery, Identity, JournalError, JournalReport,
    Recovered, RestoreError, Restored, StoreError, Survivor, check_journal, lock_dir, restore,
};
pub use threads::{BlockingSender, blocking, channel_from_blocking};
pub use types::Member;
