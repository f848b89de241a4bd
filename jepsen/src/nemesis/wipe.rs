//! Loss of the data directories of a minority, and new members in their place.

use super::choice::between;
use super::targets::{self, FEW, is_whole};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Wipe;

impl Nemesis for Wipe {
    fn name(&self) -> &'static str {
        "wipe"
    }

    fn about(&self) -> &'static str {
        "Loss of the data directories of a minority, and new members in their place."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) || view.minority() == 0 {
            return None;
        }
        let members = targets::members(random, view, FEW)?;
        Some(self.fault(between(random, 500, 1_500), Kind::Wipe { members }))
    }
}
