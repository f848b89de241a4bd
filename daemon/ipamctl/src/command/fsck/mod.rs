//! `ipamctl fsck`: compares the store with the agents' reports and with the hosts on the wire.
//!
//! The comparison takes no locks. Each finding that a program can correct records the observed state, which
//! is checked again when the correction is applied.

mod apply;
mod find;
mod finding;
mod run;

pub(crate) use run::{FsckArguments, run};
