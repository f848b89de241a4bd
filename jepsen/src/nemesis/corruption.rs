//! Damaged files of a minority: flipped bits and missing bytes in logs, snapshots and row stores.

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
        "Damaged files of a minority: flipped bits and missing bytes in logs, snapshots and row stores."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) || view.minority() == 0 {
            return None;
        }
        let members = targets::members(random, view, FEW)?;
        let kinds = [Damage::LogFlip, Damage::LogTruncate, Damage::SnapshotFlip, Damage::RowsFlip];
        let corruption = one_of(random, &kinds)?;
        // The others meanwhile agree on all that was acknowledged: a member may lack the end of its log.
        Some(self.fault(between(random, 1_500, 2_500), Kind::Corrupt { members, corruption }))
    }
}
