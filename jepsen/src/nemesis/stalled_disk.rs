//! Disks on which writes block.

use super::choice::between;
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct StalledDisk;

impl Nemesis for StalledDisk {
    fn name(&self) -> &'static str {
        "stalled-disk"
    }

    fn about(&self) -> &'static str {
        "Disks on which writes block."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        Some(self.fault(between(random, 200, 3_000), Kind::StalledDisk { members }))
    }
}
