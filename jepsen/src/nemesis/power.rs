//! Power cuts of one, several or all members, also during a snapshot or a start.

use super::choice::{between, one_of};
use super::targets::{self, ANY};
use super::{Cut, Fault, Kind, Moment, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Power;

impl Nemesis for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn about(&self) -> &'static str {
        "Power cuts of one, several or all members, also during a snapshot or a start."
    }

    fn pause_ms(&self) -> (u64, u64) {
        // Members need time to return, and clients to work.
        (800, 2_500)
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        let cut =
            one_of(random, &[Cut::Hard, Cut::Hard, Cut::Hard, Cut::Journal, Cut::Journal, Cut::Flushed])?;
        let moment = one_of(random, &[Moment::Now, Moment::Now, Moment::Snapshot, Moment::Starting])?;
        Some(self.fault(between(random, 200, 1_500), Kind::Power { members, cut, moment }))
    }
}
