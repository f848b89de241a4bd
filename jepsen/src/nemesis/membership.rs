//! Members that join, are removed, or are killed and replaced.

use super::choice::one_of;
use super::targets::is_whole;
use super::{Change, Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Fewest members with which the cluster can lose one.
const FEWEST: usize = 3;
/// Number of members from which on no further member joins.
const MOST: usize = 6;

/// Nemesis of this file.
pub(super) struct Membership;

impl Nemesis for Membership {
    fn name(&self) -> &'static str {
        "membership"
    }

    fn about(&self) -> &'static str {
        "Members that join, are removed, or are killed and replaced."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) {
            return None;
        }
        let member = one_of(random, &view.members)?;
        let (remove, replace) = (Change::Remove { member: member.clone() }, Change::Replace { member });
        let changes = match view.members.len() {
            ..FEWEST => vec![Change::Add],
            FEWEST => vec![Change::Add, replace],
            MOST.. => vec![remove, replace],
            _ => vec![Change::Add, remove, replace],
        };
        Some(self.fault(0, Kind::Membership { change: one_of(random, &changes)? }))
    }
}
