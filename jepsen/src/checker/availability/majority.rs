//! Majority that faults leave: members that are untouched and connected with each other and with clients.

use std::collections::BTreeSet;

use super::target::hit;
use crate::nemesis::{Fault, Kind, Link};

/// Number of members above which the search for a connected group takes too much time.
const MEMBERS_MAX: usize = 12;

/// Smallest majority of a number of members.
pub(super) fn quorum(members: usize) -> usize {
    members / 2 + 1
}

/// Sum of the faults that are active at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Damage<'a> {
    /// Members that a fault hits.
    hit: BTreeSet<&'a str>,
    /// Number of members that restart one after another; the member that is down at a time is unknown.
    rolling: usize,
    /// Cut directions between members.
    pub(super) links: BTreeSet<(&'a str, &'a str)>,
    /// True if clients suffer, or the effect on the majority is unknown.
    is_unknown: bool,
}

fn is_member(host: &str) -> bool {
    host.strip_prefix('n').is_some_and(|number| number.parse::<u32>().is_ok())
}

impl<'a> Damage<'a> {
    /// Sum of these faults.
    pub(super) fn of(faults: impl Iterator<Item = &'a Fault>) -> Self {
        let mut damage = Self::default();
        for fault in faults {
            damage.add(&fault.kind);
        }
        damage
    }

    fn add(&mut self, kind: &'a Kind) {
        match kind {
            Kind::Partition { links } => {
                for Link { from, to } in links {
                    if is_member(from) && is_member(to) {
                        self.links.insert((from.as_str(), to.as_str()));
                    } else {
                        self.is_unknown = true;
                    }
                }
            }
            Kind::Restart { .. } | Kind::Upgrade { .. } => self.rolling += 1,
            // A change of members changes what a majority is.
            Kind::Wipe { .. } | Kind::Membership { .. } | Kind::Restore => self.is_unknown = true,
            // Writes through agents may stop; writes of clients that connect to members must not.
            Kind::Agents { .. }
            | Kind::Nodes { .. }
            | Kind::BlindProbes { .. }
            | Kind::ForeignStation { .. }
            | Kind::TransferLeader { .. }
            | Kind::Costly { .. } => {}
            kind => {
                for host in hit(kind) {
                    self.is_unknown |= !is_member(host);
                    self.hit.insert(host);
                }
            }
        }
    }

    /// Returns true if the faults surely leave a majority of `members` members that must accept writes.
    ///
    /// `are_named` is true while the members are still `n1` to `nN`.
    pub(super) fn leaves_majority(&self, members: usize, are_named: bool) -> bool {
        if self.is_unknown || members.saturating_sub(self.hit.len() + self.rolling) < quorum(members) {
            return false;
        }
        self.links.is_empty()
            || (are_named && self.rolling == 0 && self.connected_majority(members).is_some())
    }

    /// Majority of untouched members `n1` to `nN` in which each reaches each other directly.
    pub(super) fn connected_majority(&self, members: usize) -> Option<Vec<String>> {
        if members > MEMBERS_MAX {
            return None;
        }
        let names: Vec<String> = (1..=members).map(|number| format!("n{number}")).collect();
        let groups = 1_u32..(1 << members);
        let groups = groups.filter(|group| group.count_ones() as usize >= quorum(members));
        let mut groups = groups.map(|group| {
            let mut at = 0;
            names
                .iter()
                .filter(|_| {
                    at += 1;
                    group >> (at - 1) & 1 == 1
                })
                .map(String::as_str)
                .collect::<Vec<_>>()
        });
        let is_cut = |from: &str, to: &str| self.links.contains(&(from, to));
        let found = groups.find(|group| {
            group.iter().all(|one| !self.hit.contains(one) && group.iter().all(|other| !is_cut(one, other)))
        });
        found.map(|group| group.into_iter().map(str::to_owned).collect())
    }
}

/// Returns true if these cuts leave a member without a majority that it reaches in both directions.
#[must_use]
pub fn isolates(links: &[Link], member: &str, members: usize) -> bool {
    let cut: BTreeSet<&str> = links
        .iter()
        .filter_map(|Link { from, to }| match member {
            _ if from == member => Some(to.as_str()),
            _ if to == member => Some(from.as_str()),
            _ => None,
        })
        .filter(|host| is_member(host))
        .collect();
    members.saturating_sub(cut.len()) < quorum(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::Change;

    fn fault(kind: Kind) -> Fault {
        Fault { nemesis: String::new(), lasts_ms: 1, kind }
    }

    fn pause(members: &[&str]) -> Fault {
        fault(Kind::Pause { members: members.iter().map(|name| (*name).to_owned()).collect() })
    }

    fn cut(links: &[(&str, &str)]) -> Fault {
        let link = |(from, to): &(&str, &str)| Link { from: (*from).to_owned(), to: (*to).to_owned() };
        fault(Kind::Partition { links: links.iter().map(link).collect() })
    }

    fn leaves(faults: &[Fault], members: usize) -> bool {
        Damage::of(faults.iter()).leaves_majority(members, true)
    }

    #[test]
    fn a_minority_may_suffer_and_overlapping_faults_add_up() {
        assert!(leaves(&[pause(&["n1"])], 3));
        assert!(leaves(&[pause(&["n1"]), pause(&["n1"])], 3));
        assert!(!leaves(&[pause(&["n1"]), pause(&["n2"])], 3));
        assert!(leaves(&[pause(&["n1"]), pause(&["n2"])], 5));
        assert!(!leaves(&[fault(Kind::Membership { change: Change::Add })], 3));
    }

    #[test]
    fn a_bridge_leaves_a_connected_majority_and_a_ring_of_majorities_does_not() {
        // n3 reaches all, the halves reach each other only through it.
        let halves = [("n1", "n4"), ("n1", "n5"), ("n2", "n4"), ("n2", "n5")];
        let both: Vec<_> = halves.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        assert!(leaves(&[cut(&both)], 5));
        // Each of five reaches its two neighbours only.
        let ring = [("n1", "n3"), ("n1", "n4"), ("n2", "n4"), ("n2", "n5"), ("n3", "n5")];
        assert!(!leaves(&[cut(&ring)], 5));
    }

    #[test]
    fn a_cut_of_clients_promises_nothing() {
        assert!(!leaves(&[cut(&[("x1", "n1")])], 3));
    }
}
