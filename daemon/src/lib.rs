//! The daemon: it answers HTTP, and asks the replicated state.
//!
//! `http/` has no logic beyond parse, ask, render; `config` reads what an operator
//! writes; `serve` wires a member together and takes it apart again; `dev` runs a whole cluster on this
//! machine for somebody who wants to see it work.
//!
//! **Invariant:** nothing here decides what is given to whom; that is `ipam_machine`. Nothing here
//! knows openraft, sled or the log.

pub mod access;
pub mod check_journal;
pub mod config;
mod descriptors;
pub mod dev;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod hash_secret;
pub mod http;
mod join;
pub mod metrics;
pub mod recover;
pub mod reload;
pub mod restore;
pub mod screen;
pub mod serve;
pub mod tasks;
