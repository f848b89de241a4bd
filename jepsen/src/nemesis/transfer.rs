//! Transfers of the leadership to another member.

use super::choice::one_of;
use super::targets::is_whole;
use super::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct Transfer;

impl Nemesis for Transfer {
    fn name(&self) -> &'static str {
        "transfer"
    }

    fn about(&self) -> &'static str {
        "Transfers of the leadership to another member."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        if !is_whole(view) {
            return None;
        }
        let leader = view.leader.as_ref()?;
        let others: Vec<String> = view.members.iter().filter(|name| *name != leader).cloned().collect();
        Some(self.fault(0, Kind::TransferLeader { to: one_of(random, &others)? }))
    }
}
