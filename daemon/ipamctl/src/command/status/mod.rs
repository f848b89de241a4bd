//! `ipamctl status`: the state of the cluster, on one screen.
//!
//! The command must be correct even when most of the cluster fails. It therefore queries every server
//! separately with a short time limit, also members that were not specified, needs no leader, and shows the
//! source of its statements.

mod ask;
mod judge;
mod run;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use ask::{DEADLINE, known_servers, reason};
pub(crate) use run::{StatusArguments, run};
