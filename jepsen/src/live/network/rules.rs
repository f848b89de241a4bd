//! Rules of the switch: the faults of the network that are active, by names of hosts.
//!
//! Faults are counted, because two of them may concern the same host or link.

use std::collections::BTreeMap;

use super::Impairment;
use crate::nemesis::Link;

/// Faults that are active.
#[derive(Debug, Default)]
pub(super) struct Rules {
    cuts: BTreeMap<Link, u32>,
    impairments: BTreeMap<String, Vec<Impairment>>,
    blind: BTreeMap<String, u32>,
}

/// Effect of the rules on one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// No frame passes.
    pub(super) cut: bool,
    /// Neither ARP nor NDP passes.
    pub(super) blind: bool,
    /// Impairment of frames.
    pub(super) impairment: Option<Impairment>,
}

impl Rules {
    pub(super) fn cut(&mut self, links: &[Link]) {
        for link in links {
            *self.cuts.entry(link.clone()).or_default() += 1;
        }
    }

    pub(super) fn heal(&mut self, links: &[Link]) {
        for link in links {
            lower(&mut self.cuts, link);
        }
    }

    pub(super) fn impair(&mut self, host: &str, impairment: Impairment) {
        self.impairments.entry(host.to_owned()).or_default().push(impairment);
    }

    pub(super) fn lift(&mut self, host: &str, impairment: &Impairment) {
        let Some(active) = self.impairments.get_mut(host) else { return };
        if let Some(place) = active.iter().position(|one| one == impairment) {
            active.remove(place);
        }
    }

    pub(super) fn clear(&mut self, host: &str) {
        self.impairments.remove(host);
    }

    pub(super) fn blind(&mut self, host: &str, on: bool) {
        if on {
            *self.blind.entry(host.to_owned()).or_default() += 1;
        } else {
            lower(&mut self.blind, host);
        }
    }

    /// Returns the effect on the frames of a link.
    pub(super) fn effect(&self, link: &Link) -> Effect {
        let of = |host: &str| self.impairments.get(host).into_iter().flatten().copied();
        Effect {
            cut: self.cuts.contains_key(link),
            blind: self.blind.contains_key(&link.from) || self.blind.contains_key(&link.to),
            impairment: of(&link.from).chain(of(&link.to)).reduce(Impairment::combined),
        }
    }
}

/// Lowers a counter and removes it at zero.
fn lower<K: Ord + std::borrow::Borrow<Q>, Q: Ord + ?Sized>(counters: &mut BTreeMap<K, u32>, key: &Q) {
    if let Some(counter) = counters.get_mut(key) {
        *counter -= 1;
        if *counter == 0 {
            counters.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: &str, to: &str) -> Link {
        Link { from: from.into(), to: to.into() }
    }

    #[test]
    fn a_link_cut_twice_is_healed_twice() {
        let (mut rules, links) = (Rules::default(), [link("n1", "n2")]);
        rules.heal(&links);
        rules.cut(&links);
        rules.cut(&links);
        rules.heal(&links);
        assert!(rules.effect(&links[0]).cut);
        assert!(!rules.effect(&link("n2", "n1")).cut, "one direction");
        rules.heal(&links);
        assert_eq!(rules.effect(&links[0]), Effect::default());
    }

    #[test]
    fn impairments_combine_and_are_lifted_one_by_one() {
        let mut rules = Rules::default();
        let slow = Impairment { delay_ms: 50, loss_percent: 1, ..Impairment::default() };
        let lossy = Impairment { delay_ms: 5, loss_percent: 30, ..Impairment::default() };
        rules.impair("n1", slow);
        rules.impair("n2", lossy);
        let both = rules.effect(&link("n1", "n2")).impairment.unwrap();
        assert_eq!((both.delay_ms, both.loss_percent), (50, 30));
        assert_eq!(rules.effect(&link("n3", "n1")).impairment, Some(slow));
        rules.impair("n1", lossy);
        rules.lift("n1", &slow);
        assert_eq!(rules.effect(&link("n1", "n3")).impairment, Some(lossy));
        rules.clear("n1");
        assert_eq!(rules.effect(&link("n1", "n3")), Effect::default());
    }

    #[test]
    fn blindness_is_counted_and_concerns_both_directions() {
        let mut rules = Rules::default();
        rules.blind("c1", true);
        rules.blind("c1", true);
        rules.blind("c1", false);
        assert!(rules.effect(&link("c1", "n1")).blind && rules.effect(&link("n1", "c1")).blind);
        assert!(!rules.effect(&link("n1", "n2")).blind);
        rules.blind("c1", false);
        assert!(!rules.effect(&link("c1", "n1")).blind);
    }
}
