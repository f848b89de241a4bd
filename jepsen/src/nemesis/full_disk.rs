//! Disks without free space.

use super::choice::between;
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct FullDisk;

impl Nemesis for FullDisk {
    fn name(&self) -> &'static str {
        "full-disk"
    }

    fn about(&self) -> &'static str {
        "Disks without free space."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        Some(self.fault(between(random, 500, 3_000), Kind::FullDisk { members }))
    }
}
