//! SIGKILL of one member after another, often of the leader, with hardly a pause.

use super::choice::between;
use super::targets::{self, Class};
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct RollingKill;

impl Nemesis for RollingKill {
    fn name(&self) -> &'static str {
        "rolling-kill"
    }

    fn about(&self) -> &'static str {
        "SIGKILL of one member after another, often of the leader, with hardly a pause."
    }

    fn pause_ms(&self) -> (u64, u64) {
        (50, 300)
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let members = targets::members(random, view, &[Class::Leader, Class::One])?;
        Some(self.fault(between(random, 100, 700), Kind::Kill { members }))
    }
}
