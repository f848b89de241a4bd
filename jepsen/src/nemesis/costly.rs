//! The largest and most expensive requests that limits allow.

use super::choice::{between, one_of};
use super::{Cost, Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Costly;

impl Nemesis for Costly {
    fn name(&self) -> &'static str {
        "costly"
    }

    fn about(&self) -> &'static str {
        "The largest and most expensive requests that limits allow."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if view.running.is_empty() {
            return None;
        }
        let cost = one_of(random, &[Cost::Transactions, Cost::Reads, Cost::DryRuns, Cost::Streams])?;
        let clients = u8::try_from(between(random, 1, 4)).unwrap_or(1);
        Some(self.fault(between(random, 1_000, 3_000), Kind::Costly { cost, clients }))
    }
}
