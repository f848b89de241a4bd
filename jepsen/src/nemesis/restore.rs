//! Backups, and restores of all members from them after some seconds.

use super::choice::between;
use super::targets::is_whole;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Restore;

impl Nemesis for Restore {
    fn name(&self) -> &'static str {
        "restore"
    }

    fn about(&self) -> &'static str {
        "Backups, and restores of all members from them after some seconds."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        is_whole(view).then(|| self.fault(between(random, 1_500, 4_000), Kind::Restore))
    }
}
