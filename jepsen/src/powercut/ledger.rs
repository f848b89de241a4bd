//! Record of requests and acknowledgements, and its comparison with the state of the cluster.
//!
//! **Invariant:** pure. Acknowledged allocations must exist with their ids, and released allocations must not
//! exist. A request with an unknown outcome has taken effect completely or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Maximum number of held allocations: reading all of them after each cut takes time.
const HELD_MAX: usize = 2_000;
/// Interval of releases: every third change releases addresses if enough are held.
const RELEASE_EVERY: u64 = 3;
/// Descriptions kept of one comparison's findings; the numbers count all.
const WORDS_MAX: usize = 8;
/// Comparisons without an effect after which a change of unknown outcome counts as not applied. Its budget
/// has ended long before, and servers refuse a request after its budget.
const UNKNOWN_FOR: u32 = 2;

/// An allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// Change in progress: all of it is applied or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Allocation of an address for each of these endpoints.
    Give(Vec<String>),
    /// Release of these allocations.
    TakeBack(Vec<Given>),
}

/// Result of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Acknowledged changes that are missing.
    pub(super) lost: u64,
    /// Results that no loss explains.
    pub(super) corrupt: u64,
    /// Members that failed to start.
    pub(super) refused: u64,
    /// Descriptions of the first findings.
    pub(super) words: Vec<String>,
}

impl Findings {
    fn say(&mut self, words: String) {
        if self.words.len() < WORDS_MAX {
            self.words.push(words);
        }
    }

    /// Adds what another comparison found.
    pub(super) fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.corrupt += other.corrupt;
        self.refused += other.refused;
        self.words.extend(other.words);
    }

    pub(super) fn lost(&mut self, words: String) {
        self.lost += 1;
        self.say(format!("lost: {words}"));
    }

    pub(super) fn corrupt(&mut self, words: String) {
        self.corrupt += 1;
        self.say(format!("corrupt: {words}"));
    }

    pub(super) fn refused(&mut self, words: String) {
        self.refused += 1;
        self.say(format!("refused: {words}"));
    }
}

/// Requests and acknowledgements of all clients of a cluster.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    number: u64,
    acknowledged: u64,
    /// Acknowledged and unreleased allocations, by id.
    held: BTreeMap<u64, Given>,
    /// Ids with an acknowledged release.
    gone: BTreeSet<u64>,
    /// Unanswered changes, with the number of comparisons since their begin.
    unknown: BTreeMap<u64, (Change, u32)>,
}

impl Ledger {
    /// Writes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Records an acknowledged write that is not a change of addresses.
    pub(super) fn note(&mut self) {
        self.acknowledged += 1;
    }

    /// Next change of a writer, of at most `size` addresses, and the number for its result.
    pub(super) fn begin(&mut self, size: usize) -> (u64, Change) {
        self.number += 1;
        let number = self.number;
        let full = self.held.len() >= HELD_MAX;
        let change = if full || (number.is_multiple_of(RELEASE_EVERY) && self.held.len() >= size) {
            // The oldest allocations are released, so that both old and new allocations can be lost.
            let ids: Vec<u64> = self.held.keys().copied().take(size).collect();
            Change::TakeBack(ids.iter().filter_map(|id| self.held.remove(id)).collect())
        } else {
            Change::Give((0..size).map(|at| format!("e{number}-{at}")).collect())
        };
        self.unknown.insert(number, (change.clone(), 0));
        (number, change)
    }

    /// Records an acknowledgement; `given` are the allocated addresses, if any.
    pub(super) fn acknowledge(&mut self, number: u64, given: Vec<Given>) {
        let Some((change, _)) = self.unknown.remove(&number) else { return };
        let count = match change {
            Change::Give(_) => {
                let count = given.len();
                self.held.extend(given.into_iter().map(|given| (given.id, given)));
                count
            }
            Change::TakeBack(taken) => {
                self.gone.extend(taken.iter().map(|given| given.id));
                taken.len()
            }
        };
        self.acknowledged += u64::try_from(count).unwrap_or_default();
    }

    /// Records a refusal that guarantees no effect.
    pub(super) fn undo(&mut self, number: u64) {
        if let Some((Change::TakeBack(taken), _)) = self.unknown.remove(&number) {
            self.held.extend(taken.into_iter().map(|given| (given.id, given)));
        }
    }

    /// Compares all existing allocations with the ledger, while no writer runs. Each finding is counted once.
    pub(super) fn check(&mut self, found: &[Given]) -> Findings {
        let mut findings = Findings::default();
        let mut owners: BTreeMap<IpAddr, &Given> = BTreeMap::new();
        for given in found {
            if let Some(other) = owners.insert(given.address, given) {
                findings.corrupt(format!("{} has {} and so has {}", other.name, given.address, given.name));
            }
        }
        let mut left: BTreeMap<u64, &Given> = found.iter().map(|given| (given.id, given)).collect();
        self.held.retain(|id, given| match left.remove(id) {
            Some(there) if there == given => true,
            Some(there) => {
                findings.corrupt(format!("{given:?} has become {there:?}"));
                false
            }
            None => {
                findings.lost(format!("{} of {}, allocation {id}", given.address, given.name));
                false
            }
        });
        self.resolve(&mut left, &mut findings);
        for (id, given) in left {
            if self.gone.remove(&id) {
                findings.lost(format!("the release of {} by {}, allocation {id}", given.address, given.name));
            } else {
                findings.corrupt(format!("no request for {given:?}"));
            }
            self.held.insert(id, given.clone());
        }
        findings
    }

    /// Determines the outcome of unanswered changes.
    fn resolve(&mut self, left: &mut BTreeMap<u64, &Given>, findings: &mut Findings) {
        let ids: BTreeMap<String, u64> = left.values().map(|given| (given.name.clone(), given.id)).collect();
        for (number, (change, seen)) in std::mem::take(&mut self.unknown) {
            let (there, whole): (Vec<Given>, usize) = match &change {
                Change::Give(names) => {
                    let mine = names.iter().filter_map(|name| ids.get(name));
                    (mine.filter_map(|id| left.remove(id)).cloned().collect(), names.len())
                }
                Change::TakeBack(taken) => {
                    let mine = taken.iter().filter_map(|given| left.remove(&given.id));
                    (mine.cloned().collect(), taken.len())
                }
            };
            if !there.is_empty() && there.len() < whole {
                findings.corrupt(format!(
                    "{} of {whole} steps of a transaction were done: {change:?}",
                    there.len()
                ));
            }
            // An effect proves that the change was applied. A change without an effect may still be applied
            // later.
            let happened = there.is_empty() == matches!(change, Change::TakeBack(_));
            if happened || seen + 1 >= UNKNOWN_FOR {
                self.held.extend(there.into_iter().map(|given| (given.id, given)));
            } else {
                self.unknown.insert(number, (change, seen + 1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn given(id: u64, name: &str) -> Given {
        let [.., a, b] = id.to_be_bytes();
        Given { id, name: name.to_owned(), address: Ipv4Addr::new(10, 0, a, b).into() }
    }

    /// Ledger of a change that allocated two addresses, and these addresses.
    fn two() -> (Ledger, Vec<Given>) {
        let mut ledger = Ledger::default();
        let (number, change) = ledger.begin(2);
        let Change::Give(names) = change else { panic!("{change:?}") };
        let there: Vec<Given> = names.iter().zip(1..).map(|(name, id)| given(id, name)).collect();
        ledger.acknowledge(number, there.clone());
        (ledger, there)
    }

    /// Next release of `size` allocations; the allocating changes before it are skipped.
    fn take_back(ledger: &mut Ledger, size: usize) -> u64 {
        loop {
            match ledger.begin(size) {
                (number, Change::TakeBack(_)) => return number,
                (number, Change::Give(_)) => ledger.undo(number),
            }
        }
    }

    fn counts(findings: &Findings) -> (u64, u64) {
        assert_eq!(findings.words.is_empty(), findings.lost + findings.corrupt == 0);
        (findings.lost, findings.corrupt)
    }

    #[test]
    fn an_acknowledged_and_present_allocation_is_in_order() {
        let (mut ledger, there) = two();
        assert_eq!(ledger.acknowledged(), 2);
        assert_eq!(ledger.check(&there), Findings::default());
    }

    #[test]
    fn an_acknowledged_and_missing_allocation_is_lost_once() {
        let (mut ledger, there) = two();
        assert_eq!(counts(&ledger.check(&there[1..])), (1, 0));
        assert_eq!(counts(&ledger.check(&there[1..])), (0, 0));
    }

    #[test]
    fn an_id_that_changed_its_address_is_corrupt() {
        let (mut ledger, mut there) = two();
        there[0].address = Ipv4Addr::new(10, 9, 9, 9).into();
        assert_eq!(counts(&ledger.check(&there)), (0, 1));
    }

    #[test]
    fn an_address_with_two_owners_is_corrupt() {
        let (mut ledger, mut there) = two();
        there[0].address = there[1].address;
        assert_eq!(counts(&ledger.check(&there)), (0, 2), "and one of them has another than it was told");
    }

    #[test]
    fn an_acknowledged_release_that_is_undone_is_lost() {
        let (mut ledger, there) = two();
        let number = take_back(&mut ledger, 2);
        ledger.acknowledge(number, Vec::new());
        assert_eq!(ledger.acknowledged(), 4);
        assert_eq!(counts(&ledger.check(&[])), (0, 0));
        assert_eq!(counts(&ledger.check(&there)), (2, 0));
        assert_eq!(counts(&ledger.check(&there)), (0, 0));
    }

    #[test]
    fn an_unrequested_allocation_is_corrupt() {
        let (mut ledger, mut there) = two();
        there.push(given(9, "stranger"));
        assert_eq!(counts(&ledger.check(&there)), (0, 1));
    }

    #[test]
    fn an_unknown_gift_is_there_or_not_but_never_half() {
        for shown in 0..=2 {
            let mut ledger = Ledger::default();
            let (_, Change::Give(names)) = ledger.begin(2) else { panic!() };
            let there: Vec<Given> =
                names.iter().zip(1..).map(|(name, id)| given(id, name)).take(shown).collect();
            assert_eq!(counts(&ledger.check(&there)), (0, u64::from(shown == 1)), "{shown}");
            // From then on the change is as certain as an acknowledged one.
            if shown == 2 {
                assert_eq!(counts(&ledger.check(&[])), (2, 0));
            }
        }
    }

    #[test]
    fn an_unknown_release_has_happened_or_not_but_never_half() {
        for shown in 0..=2 {
            let (mut ledger, there) = two();
            take_back(&mut ledger, 2);
            assert_eq!(counts(&ledger.check(&there[..shown])), (0, u64::from(shown == 1)), "{shown}");
            if shown == 2 {
                // The change may still take effect, but not for ever.
                assert_eq!(counts(&ledger.check(&there)), (0, 0));
                assert_eq!(counts(&ledger.check(&[])), (2, 0));
            }
        }
    }

    #[test]
    fn a_refused_request_has_no_effect() {
        let mut ledger = Ledger::default();
        let (number, Change::Give(names)) = ledger.begin(1) else { panic!() };
        ledger.undo(number);
        assert_eq!(counts(&ledger.check(&[given(1, &names[0])])), (0, 1));
        let (mut ledger, there) = two();
        let number = take_back(&mut ledger, 2);
        ledger.undo(number);
        assert_eq!(counts(&ledger.check(&there)), (0, 0));
        assert_eq!(counts(&ledger.check(&[])), (2, 0));
    }

    #[test]
    fn no_more_is_held_than_can_be_read_often() {
        let mut ledger = Ledger::default();
        let mut id = 0;
        for _ in 0..1_000 {
            let (number, change) = ledger.begin(64);
            let mut given_now = Vec::new();
            if let Change::Give(names) = change {
                for name in names {
                    id += 1;
                    given_now.push(given(id, &name));
                }
            }
            ledger.acknowledge(number, given_now);
            assert!(ledger.held.len() < HELD_MAX + 64);
        }
    }
}
