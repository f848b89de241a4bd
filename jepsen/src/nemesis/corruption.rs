//! Damaged files of a minority: flipped bits in logs, snapshots and row stores.

use super::choice::{between, one_of};
use super::targets::{self, FEW, is_whole};
use super::{Corruption as Damage, Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Corruption;

impl Nemesis for Corruption {
    fn name(&self) -> &'static str {
        "corruption"
    }

    fn about(&self) -> &'static str {
        "Damaged files of a minority: flipped bits in logs, snapshots and row stores."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) || view.minority() == 0 {
            return None;
        }
        let members = targets::members(random, view, FEW)?;
        // The loss of a synced end of a log is excluded: no member can tell it from a torn write, and a
        // leader relies on acknowledged entries. The guarantees exclude disks that lose synced data.
        let kinds = [Damage::LogFlip, Damage::SnapshotFlip, Damage::RowsFlip];
        let corruption = one_of(random, &kinds)?;
        Some(self.fault(between(random, 1_500, 2_500), Kind::Corrupt { members, corruption }))
    }
}
