//! Hosts of clients and agents that reach some members or none.

use super::choice::{between, chance, one_of, some_of};
use super::{Fault, Kind, Link, Nemesis, View};
use crate::random::Random;

/// Nemesis of this file.
pub(super) struct IsolateClient;

impl Nemesis for IsolateClient {
    fn name(&self) -> &'static str {
        "isolate-client"
    }

    fn about(&self) -> &'static str {
        "Hosts of clients and agents that reach some members or none."
    }

    fn next(&self, random: &mut Random, view: &View) -> Option<Fault> {
        let host = one_of(random, &view.hosts)?;
        let count = match chance(random, 50) {
            true => view.members.len(),
            false => random.below(view.members.len()).saturating_add(1),
        };
        let links: Vec<Link> =
            some_of(random, &view.members, count).iter().flat_map(|one| Link::both(&host, one)).collect();
        (!links.is_empty()).then(|| self.fault(between(random, 500, 3_000), Kind::Partition { links }))
    }
}
