//! `ipamctl status`: the state of the cluster, on one screen.
//!
//! It has to be right when everything is wrong. So it asks every server on its own and briefly, follows to
//! members that weren't named, reads without needing a leader, and says where its words come from.

mod ask;
mod judge;
mod run;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use ask::{DEADLINE, known_servers, reason};
pub(crate) use run::{StatusArguments, run};
