//! Disks on which each fsync fails with EIO.

use super::choice::between;
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct FailingDisk;

impl Nemesis for FailingDisk {
    fn name(&self) -> &'static str {
        "failing-disk"
    }

    fn about(&self) -> &'static str {
        "Disks on which each fsync fails with EIO."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        Some(self.fault(between(random, 300, 2_000), Kind::FailingDisk { members }))
    }
}
