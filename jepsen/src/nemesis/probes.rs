//! Probes that are blind, and foreign stations that answer for free addresses.

use super::choice::{between, chance, some_of};
use super::targets::nodes;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Probes;

impl Nemesis for Probes {
    fn name(&self) -> &'static str {
        "probes"
    }

    fn about(&self) -> &'static str {
        "Probes that are blind, and foreign stations that answer for free addresses."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if chance(random, 50) {
            let lasts_ms = between(random, 500, 3_000);
            let addresses = u16::try_from(between(random, 1, 8)).unwrap_or(1);
            return Some(self.fault(lasts_ms, Kind::ForeignStation { addresses }));
        }
        // Longer than the interval in which agents probe, so that frames are dropped.
        let lasts_ms = between(random, 1_500, 4_000);
        let nodes = nodes(view);
        let count = random.below(nodes.len()).saturating_add(1);
        let hosts = some_of(random, &nodes, count);
        (!hosts.is_empty()).then(|| self.fault(lasts_ms, Kind::BlindProbes { hosts }))
    }
}
