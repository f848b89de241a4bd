//! `ipamctl fsck`: compares the store with the agents' reports and with the hosts on the wire.
//!
//! Nothing is locked. Each finding that a program can correct names what was observed, and is checked again
//! when it is applied.

mod apply;
mod find;
mod finding;
mod run;

pub(crate) use run::{FsckArguments, run};
