//! Loss of a host with its agent and containers, and a boot without containers.

use super::choice::{between, one_of};
use super::targets::nodes;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Nodes;

impl Nemesis for Nodes {
    fn name(&self) -> &'static str {
        "nodes"
    }

    fn about(&self) -> &'static str {
        "Loss of a host with its agent and containers, and a boot without containers."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let host = one_of(random, &nodes(view))?;
        Some(self.fault(between(random, 500, 3_000), Kind::Nodes { hosts: vec![host] }))
    }
}
