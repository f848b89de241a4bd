//! Members with 5 to 30 percent of one CPU.

use super::choice::{between, one_of};
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Cpu;

impl Nemesis for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn about(&self) -> &'static str {
        "Members with 5 to 30 percent of one CPU."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        let percent = one_of(random, &[5, 10, 20, 30])?;
        Some(self.fault(between(random, 1_000, 4_000), Kind::Cpu { members, percent }))
    }
}
