//! Links between members that drop frames: halves, leader in a minority, bridge, ring, one way, single.

use super::forms::{self, Form};
use crate::nemesis::choice::{between, one_of};
use crate::nemesis::{Fault, Kind, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(in crate::nemesis) struct Partition;

impl Nemesis for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn about(&self) -> &'static str {
        "Links between members that drop frames: halves, leader in a minority, bridge, ring, one way, single."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let links = forms::links(one_of(random, Form::ALL)?, random, view);
        (!links.is_empty()).then(|| self.fault(between(random, 500, 4_000), Kind::Partition { links }))
    }
}
