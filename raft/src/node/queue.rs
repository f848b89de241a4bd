//! Queue of proposals: fair between principals and their namespaces, with a bounded share of each entry per
//! principal.
//!
//! All members apply an entry before the next one, so what one principal puts into an entry delays all
//! others. Principals take turns, and so do the namespaces of each. A principal whose commands are expensive
//! to apply gets fewer of them into an entry, and the rest of its commands wait for the next ones, while the
//! commands of other principals pass. Costs are measured by the leader alone: they affect the order of the
//! log, never the effect of a command.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ipam_api::limits::{COMMANDS_PER_ENTRY_MAX, ENTRY_BYTES_MAX};

use super::requester::{NamespaceKey, Requester};
use super::ring::{Lane, Ring, TURN};
use super::shares::Size;
use ipam_machine::command::Text;

/// Expected time that the commands of one principal may take in one entry. A single command may exceed it.
const SHARE_OF_ENTRY: Duration = Duration::from_millis(5);
/// Expected time of a command with the weight 1 of an unknown principal.
const COST_EXPECTED: Duration = Duration::from_micros(20);
/// Maximum number of principals whose high costs are remembered.
const PRINCIPALS_REMEMBERED_MAX: usize = 1024;

/// A proposal that waits for an entry.
#[derive(Debug)]
pub(super) struct Queued<T> {
    /// Number of the arrival, by which the proposal can be removed.
    number: u64,
    pub(super) size: Size,
    pub(super) item: T,
}

impl<T> Lane for VecDeque<Queued<T>> {
    type Item = Queued<T>;

    fn front(&mut self) -> Option<&Queued<T>> {
        VecDeque::front(self)
    }

    fn pop(&mut self) -> Option<(usize, Queued<T>)> {
        self.pop_front().map(|queued| (queued.size.weight, queued))
    }

    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

/// Proposals of a principal, by namespace.
type Namespaces<T> = Ring<Option<NamespaceKey>, VecDeque<Queued<T>>>;

/// The queue for entries.
#[derive(Debug)]
pub(super) struct Queue<T> {
    principals: Ring<Text, Namespaces<T>>,
    arrivals: u64,
    weight: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { principals: Ring::default(), arrivals: 0, weight: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds a proposal, and returns its number.
    pub(super) fn push(&mut self, requester: &Requester, size: Size, item: T) -> u64 {
        self.arrivals += 1;
        self.weight += size.weight;
        let namespaces = self.principals.add(&requester.principal, size.weight);
        let queued = Queued { number: self.arrivals, size, item };
        namespaces.add(&requester.namespace, size.weight).push_back(queued);
        self.arrivals
    }

    /// Removes a proposal, unless it was taken; returns true if it still waited.
    pub(super) fn remove(&mut self, requester: &Requester, number: u64) -> bool {
        let removed = self.principals.remove(&requester.principal, |namespaces| {
            namespaces.remove(&requester.namespace, |lane| {
                let at = lane.binary_search_by_key(&number, |queued| queued.number).ok()?;
                lane.remove(at).map(|queued| queued.size.weight)
            })
        });
        self.weight = self.weight.saturating_sub(removed.unwrap_or_default());
        removed.is_some()
    }

    /// Weight of all proposals.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns true if no proposal waits.
    pub(super) fn is_empty(&self) -> bool {
        self.principals.is_empty()
    }

    /// Upper bound of the weight that is taken before a new proposal of a requester, itself included.
    pub(super) fn ahead(&self, requester: &Requester, weight: usize) -> usize {
        let (mut of_principal, mut owed, mut of_namespace, mut namespaces) = (0, 0, 0, 0);
        if let Some(principal) = self.principals.get(&requester.principal) {
            (of_principal, owed) = (principal.weight, principal.debt);
            namespaces = principal.lane.len();
            let namespace = principal.lane.get(&requester.namespace);
            of_namespace = namespace.map_or(0, |namespace| namespace.weight + namespace.debt);
        }
        // Other lanes take whole turns, even while this lane skips turns to pay its debt.
        let turns = |weight: usize| weight.next_multiple_of(TURN);
        let of_principal = (of_principal + weight).min(turns(of_namespace + weight) * (namespaces + 1));
        (self.weight + weight).min(turns(of_principal + owed) * (self.principals.len() + 1))
    }

    /// Number of entries over which the principal's share spreads its proposals, with a new one.
    pub(super) fn entries(&self, requester: &Requester, weight: usize, costs: &Costs) -> u32 {
        let principal = self.principals.get(&requester.principal);
        let (queued, items) = principal.map_or((0, 0), |principal| (principal.weight, principal.items));
        let bounded = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let cost = costs.expected(&requester.principal).saturating_mul(bounded(queued + weight));
        let shares = u32::try_from(cost.as_nanos() / SHARE_OF_ENTRY.as_nanos()).unwrap_or(u32::MAX);
        // An entry takes at least one command of each principal, however expensive.
        shares.min(bounded(items + 1))
    }

    /// Takes the commands of the next entry: as many as fit, with each principal's share. The commands of one
    /// namespace keep their order.
    pub(super) fn take(&mut self, costs: &Costs) -> Vec<Queued<T>> {
        let (mut taken, mut bytes) = (Vec::new(), 0_usize);
        let mut shares: BTreeMap<Text, Duration> = BTreeMap::new();
        let mut served = Vec::new();
        while let Some(principal) = self.principals.turn().cloned() {
            let Some(next) = self.principals.front() else { break };
            let total = bytes.saturating_add(next.size.bytes);
            if taken.len() >= COMMANDS_PER_ENTRY_MAX || (total > ENTRY_BYTES_MAX && !taken.is_empty()) {
                break;
            }
            let weight = u32::try_from(next.size.weight).unwrap_or(u32::MAX);
            let cost = costs.expected(&principal).saturating_mul(weight);
            let share = shares.entry(principal).or_default();
            if !share.is_zero() && *share + cost > SHARE_OF_ENTRY {
                served.extend(self.principals.set_aside());
                continue;
            }
            *share += cost;
            bytes = total;
            let Some((weight, next)) = self.principals.pop() else { break };
            self.weight = self.weight.saturating_sub(weight);
            taken.push(next);
        }
        served.into_iter().for_each(|lane| self.principals.put_back(lane));
        taken
    }
}

/// Recent apply time of a command of weight 1 by principal, for above-average costs only.
#[derive(Debug, Default)]
pub(super) struct Costs(BTreeMap<Text, Duration>);

impl Costs {
    fn expected(&self, principal: &Text) -> Duration {
        self.0.get(principal).copied().unwrap_or(COST_EXPECTED)
    }

    /// Records how long a command of this weight took. The expected cost rises at once and falls slowly.
    pub(super) fn note(&mut self, principal: &Text, weight: usize, took: Duration) {
        let took = took / u32::try_from(weight.max(1)).unwrap_or(u32::MAX);
        let old = self.expected(principal);
        let new = took.max((old * 3 + took) / 4);
        if new <= COST_EXPECTED {
            self.0.remove(principal);
            return;
        }
        self.0.insert(principal.clone(), new);
        if self.0.len() > PRINCIPALS_REMEMBERED_MAX {
            let cheapest =
                self.0.iter().min_by_key(|(_, cost)| **cost).map(|(principal, _)| principal.clone());
            if let Some(cheapest) = cheapest {
                self.0.remove(&cheapest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ipam_api::name::{Name, ObjectName};

    use super::*;

    fn requester(principal: &str) -> Requester {
        Requester { principal: Text::given(principal), namespace: None }
    }

    fn of_namespace(principal: &str, namespace: &str) -> Requester {
        let key = (Name::default_name(), ObjectName::new(namespace).unwrap());
        Requester { namespace: Some(key), ..requester(principal) }
    }

    fn queue(items: &[(&str, usize)]) -> Queue<usize> {
        let mut queue = Queue::default();
        for (item, (principal, bytes)) in items.iter().enumerate() {
            queue.push(&requester(principal), Size { weight: 1, bytes: *bytes }, item);
        }
        queue
    }

    fn items<T>(taken: Vec<Queued<T>>) -> Vec<T> {
        taken.into_iter().map(|queued| queued.item).collect()
    }

    /// Takes entries until nothing is left.
    fn drain<T>(queue: &mut Queue<T>) -> Vec<T> {
        let entries = std::iter::from_fn(|| {
            let entry = items(queue.take(&Costs::default()));
            (!entry.is_empty()).then_some(entry)
        });
        entries.flatten().collect()
    }

    const ONE: Size = Size { weight: 1, bytes: 1 };

    #[test]
    fn cheap_commands_travel_together_and_those_of_a_principal_keep_their_order() {
        let mut queue = queue(&[("a", 10), ("b", 10), ("a", 10)]);
        assert_eq!(items(queue.take(&Costs::default())), [0, 2, 1]);
        assert!(queue.is_empty());
        assert_eq!(queue.weight, 0);
    }

    #[test]
    fn a_quiet_principal_waits_for_one_turn_of_each_other() {
        const FLOOD: usize = 5_000;
        let mut queue = Queue::default();
        for number in 0..FLOOD {
            queue.push(&requester(["flood-a", "flood-b"][number % 2]), ONE, "flood");
        }
        queue.push(&requester("quiet"), ONE, "quiet");
        let before = drain(&mut queue).iter().position(|item| *item == "quiet").unwrap();
        assert!(before <= 2 * TURN, "{before} commands before it");
    }

    #[test]
    fn a_quiet_namespace_waits_for_one_turn_of_each_other_of_its_principal() {
        const FLOOD: usize = 5_000;
        let mut queue = Queue::default();
        for _ in 0..FLOOD {
            queue.push(&of_namespace("controller", "flood"), ONE, "flood");
            queue.push(&requester("flood"), ONE, "flood");
        }
        queue.push(&of_namespace("controller", "quiet"), ONE, "quiet");
        let before = drain(&mut queue).iter().position(|item| *item == "quiet").unwrap();
        // A turn of the namespace in each of two turns of its principal, and the turns of the other one.
        assert!(before <= 4 * TURN, "{before} commands before it");
    }

    #[test]
    fn heavy_commands_get_the_same_weight_as_light_ones() {
        const HEAVY: Size = Size { weight: 4 * TURN, bytes: 1 };
        let mut queue = Queue::default();
        for _ in 0..100 {
            queue.push(&requester("bulk"), HEAVY, HEAVY.weight);
        }
        for _ in 0..2_000 {
            queue.push(&requester("single"), ONE, ONE.weight);
        }
        let all = drain(&mut queue);
        let until_light_ones_end = all.iter().rposition(|weight| *weight == 1).unwrap();
        let heavy: usize = all[..until_light_ones_end].iter().filter(|weight| **weight != 1).sum();
        // Whole commands only fit into the share of an entry; by count they would get 64 times as much.
        assert!((1_400..=2_100).contains(&heavy), "{heavy} beside 2000");
    }

    #[test]
    fn a_request_that_gave_up_is_removed_and_the_rest_stays() {
        let mut queue = Queue::default();
        let numbers: Vec<u64> = (0..3).map(|item| queue.push(&requester("a"), ONE, item)).collect();
        let other = queue.push(&requester("b"), ONE, 3);
        assert!(queue.remove(&requester("a"), numbers[1]));
        assert!(queue.remove(&requester("b"), other));
        assert!(!queue.remove(&requester("b"), other), "once");
        assert_eq!(items(queue.take(&Costs::default())), [0, 2]);
        assert!(!queue.remove(&requester("a"), numbers[0]), "it was taken");
        assert!(queue.is_empty());
        assert_eq!(queue.weight, 0);
    }

    #[test]
    fn the_expected_place_of_a_quiet_requester_is_near_the_front() {
        let mut queue = Queue::default();
        for number in 0..1_000 {
            queue.push(&of_namespace("flood", "web"), ONE, number);
        }
        assert_eq!(queue.ahead(&of_namespace("flood", "web"), 1), 1_001);
        assert_eq!(queue.ahead(&requester("quiet"), 1), 2 * TURN);
        assert_eq!(queue.ahead(&of_namespace("flood", "db"), 1), 4 * TURN);
    }

    #[test]
    fn the_expected_place_counts_what_a_requester_owes() {
        let mut queue = Queue::default();
        for _ in 0..1_000 {
            queue.push(&requester("flood"), ONE, "flood");
        }
        queue.push(&requester("bulk"), Size { weight: 4 * TURN, bytes: 1 }, "bulk");
        while queue.principals.pop().unwrap().1.item != "bulk" {}
        let ahead = queue.ahead(&requester("bulk"), 1);
        queue.push(&requester("bulk"), ONE, "next");
        let before = std::iter::from_fn(|| queue.principals.pop()).position(|(_, next)| next.item == "next");
        let before = before.unwrap();
        assert!((3 * TURN..=ahead).contains(&before), "{before} before it, {ahead} expected");
        assert!(ahead <= 10 * TURN, "{ahead}");
    }

    #[test]
    fn an_expensive_principal_delays_itself_and_no_other() {
        let mut costs = Costs::default();
        costs.note(&Text::given("dear"), 1, SHARE_OF_ENTRY);
        let mut queue = queue(&[("dear", 1), ("dear", 1), ("cheap", 1), ("dear", 1), ("cheap", 1)]);
        assert_eq!(items(queue.take(&costs)), [0, 2, 4]);
        assert_eq!(items(queue.take(&costs)), [1]);
        // Once its commands are cheap again they travel together again.
        for _ in 0..100 {
            costs.note(&Text::given("dear"), 1, Duration::from_micros(1));
        }
        queue.push(&requester("dear"), ONE, 9);
        assert_eq!(items(queue.take(&costs)), [3, 9]);
        assert!(costs.0.is_empty(), "nothing is remembered of cheap principals");
    }

    #[test]
    fn one_principal_alone_gets_all_of_what_an_entry_may_cost() {
        let many = usize::try_from(SHARE_OF_ENTRY.as_micros() / COST_EXPECTED.as_micros()).unwrap();
        let mut queue = queue(&vec![("a", 1); many + 5]);
        assert_eq!(queue.take(&Costs::default()).len(), many);
        assert_eq!(queue.take(&Costs::default()).len(), 5);
    }

    #[test]
    fn an_entry_is_bounded_in_bytes_but_for_a_single_command() {
        let mut queue = queue(&[("a", ENTRY_BYTES_MAX + 1), ("b", ENTRY_BYTES_MAX), ("c", 1)]);
        for expected in [0, 1, 2] {
            assert_eq!(items(queue.take(&Costs::default())), [expected]);
        }
    }

    #[test]
    fn costs_of_few_principals_are_remembered_the_most_expensive_ones() {
        let mut costs = Costs::default();
        for (number, times) in (0..PRINCIPALS_REMEMBERED_MAX + 10).zip(2..) {
            costs.note(&Text::given(format!("p{number}")), 1, COST_EXPECTED * times);
        }
        assert_eq!(costs.0.len(), PRINCIPALS_REMEMBERED_MAX);
        assert_eq!(costs.expected(&Text::given("p0")), COST_EXPECTED);
    }
}
