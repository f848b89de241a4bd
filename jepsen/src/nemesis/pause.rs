//! SIGSTOP of one, a minority, a majority, the leader or all members.

use super::choice::between;
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Pause;

impl Nemesis for Pause {
    fn name(&self) -> &'static str {
        "pause"
    }

    fn about(&self) -> &'static str {
        "SIGSTOP of one, a minority, a majority, the leader or all members."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        Some(self.fault(between(random, 200, 4_000), Kind::Pause { members }))
    }
}
