//! Disks on which each fsync takes 5 to 200 ms longer.

use super::choice::{between, one_of};
use super::targets::{self, ANY};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct SlowDisk;

impl Nemesis for SlowDisk {
    fn name(&self) -> &'static str {
        "slow-disk"
    }

    fn about(&self) -> &'static str {
        "Disks on which each fsync takes 5 to 200 ms longer."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, ANY)?;
        let fsync_ms = one_of(random, &[5, 20, 50, 100, 200])?;
        Some(self.fault(between(random, 1_000, 4_000), Kind::SlowDisk { members, fsync_ms }))
    }
}
