//! Library of the daemon: HTTP in front of the replicated state.
//!
//! `http/` only parses requests, calls the replicated state and renders responses; `config` reads the
//! configuration; `serve` starts and stops a member; `dev` runs a whole cluster on this machine for a trial.
//!
//! **Invariant:** nothing here decides about allocation; `ipam_machine` does. Nothing here depends on
//! openraft, sled or the log.

pub mod access;
pub mod check_journal;
pub mod command_line;
pub mod config;
mod descriptors;
pub mod dev;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod hash_secret;
pub mod http;
pub mod join;
#[cfg(feature = "meridio")]
pub mod meridio;
pub mod metrics;
pub mod recover;
pub mod reload;
pub mod restore;
pub mod screen;
pub mod serve;
pub mod supervision;
pub mod tasks;
#[cfg(feature = "kubernetes")]
pub mod watchers;
pub mod workload;
