//! Wall clocks that jump by up to ten minutes, back or ahead, or run at a wrong rate.

use super::choice::{between, one_of};
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Clock;

impl Nemesis for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn about(&self) -> &'static str {
        "Wall clocks that jump by up to ten minutes, back or ahead, or run at a wrong rate."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        let shift_ms = one_of(random, &[-600_000, -60_000, -1_500, 0, 1_500, 60_000, 600_000])?;
        // A clock without a shift has a wrong rate, by which it is wrong within the shortest fault.
        let rates: &[i64] = &[-200_000, -10_000, 10_000, 200_000, 1_000_000];
        let drift_ppm = if shift_ms == 0 { one_of(random, rates)? } else { one_of(random, &[0, 0, 500])? };
        Some(self.fault(between(random, 1_000, 4_000), Kind::Clock { members, shift_ms, drift_ppm }))
    }
}
