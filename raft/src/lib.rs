//! The replicated state of ipamd: the deterministic machine, its storage and its peers.
//!
//! Three storeys, each of which may only look down: [`node`] is what the daemon sees; `transport` and
//! `store` carry and keep; [`machine`] decides, and knows no disk, no network, no clock.
//!
//! **Invariant:** openraft, raft-log and sled are named nowhere outside this crate, and nowhere in
//! [`machine`].

pub mod batch;
pub mod durations;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod machine;
pub mod node;
mod pace;
pub mod progress;
pub mod room;
mod store;
mod transport;
mod types;

pub use node::{Node, NodeConfig};
#[cfg(feature = "spoil")]
#[doc(hidden)]
pub use store::through_a_snapshot;
pub use store::{
    Backup, DamagedFile, DirLock, EventFilter, EventPage, EventQuery, Identity, JournalError, JournalReport,
    Recovered, RestoreError, Restored, StoreError, Survivor, check_journal, lock_dir, restore,
};
pub use types::Member;
