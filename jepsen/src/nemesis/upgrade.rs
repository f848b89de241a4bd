//! Rolling restarts, and rolling upgrades to the next version.

use super::choice::{chance, shuffled};
use super::targets::is_whole;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Upgrade;

impl Nemesis for Upgrade {
    fn name(&self) -> &'static str {
        "upgrade"
    }

    fn about(&self) -> &'static str {
        "Rolling restarts, and rolling upgrades to the next version."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) {
            return None;
        }
        let members = shuffled(random, &view.members);
        let kind = if chance(random, 50) { Kind::Restart { members } } else { Kind::Upgrade { members } };
        Some(self.fault(0, kind))
    }
}
