//! SIGKILL of the agents of hosts, and new starts.

use super::choice::{between, some_of};
use super::targets::nodes;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Agents;

impl Nemesis for Agents {
    fn name(&self) -> &'static str {
        "agents"
    }

    fn about(&self) -> &'static str {
        "SIGKILL of the agents of hosts, and new starts."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let nodes = nodes(view);
        let count = random.below(nodes.len()).saturating_add(1);
        let hosts = some_of(random, &nodes, count);
        (!hosts.is_empty()).then(|| self.fault(between(random, 200, 2_000), Kind::Agents { hosts }))
    }
}
