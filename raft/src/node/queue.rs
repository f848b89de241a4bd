//! Queue of proposals: first come, first served, with a bounded share of each entry per principal.
//!
//! All members apply an entry before the next one, so what one principal puts into an entry delays all
//! others. A principal whose commands are expensive to apply gets fewer of them into an entry, and the rest
//! of its commands wait for the next ones, while the commands of other principals pass. Costs are measured by
//! the leader alone: they affect the order of the log, never the effect of a command.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ipam_api::limits::{COMMANDS_PER_ENTRY_MAX, ENTRY_BYTES_MAX};

use ipam_machine::command::Text;

/// Time that the commands of one principal in one entry may be expected to take. A single one may exceed it.
const SHARE_OF_ENTRY: Duration = Duration::from_millis(5);
/// Expected time of a command of an unknown principal.
const COST_EXPECTED: Duration = Duration::from_micros(20);
/// Principals with expensive commands that are remembered.
const PRINCIPALS_REMEMBERED_MAX: usize = 1024;

/// Something that waits for an entry.
#[derive(Debug)]
pub(super) struct Queued<T> {
    pub(super) principal: Text,
    pub(super) bytes: usize,
    pub(super) item: T,
}

/// The queue for entries, in the order of arrival.
pub(super) type Queue<T> = VecDeque<Queued<T>>;

/// Takes the commands of the next entry: as many as fit, with each principal's share. The commands of one
/// principal keep their order.
pub(super) fn take<T>(queue: &mut Queue<T>, costs: &Costs) -> Vec<Queued<T>> {
    let (mut taken, mut bytes) = (Vec::new(), 0_usize);
    let mut passed = VecDeque::new();
    let mut shares: BTreeMap<Text, Duration> = BTreeMap::new();
    while let Some(next) = queue.pop_front() {
        let total = bytes.saturating_add(next.bytes);
        if taken.len() >= COMMANDS_PER_ENTRY_MAX || (total > ENTRY_BYTES_MAX && !taken.is_empty()) {
            passed.push_back(next);
            break;
        }
        let cost = costs.expected(&next.principal);
        let share = shares.entry(next.principal.clone()).or_default();
        if !share.is_zero() && *share + cost > SHARE_OF_ENTRY {
            passed.push_back(next);
            continue;
        }
        *share += cost;
        bytes = total;
        taken.push(next);
    }
    while let Some(earlier) = passed.pop_back() {
        queue.push_front(earlier);
    }
    taken
}

/// Recent apply times by principal, of those with above-average costs only.
#[derive(Debug, Default)]
pub(super) struct Costs(BTreeMap<Text, Duration>);

impl Costs {
    fn expected(&self, principal: &Text) -> Duration {
        self.0.get(principal).copied().unwrap_or(COST_EXPECTED)
    }

    /// Takes note of how long a command took: rises at once, falls slowly.
    pub(super) fn note(&mut self, principal: &Text, took: Duration) {
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
    use super::*;

    fn queue(items: &[(&str, usize)]) -> Queue<usize> {
        let mut queue = Queue::default();
        for (item, (principal, bytes)) in items.iter().enumerate() {
            queue.push_back(Queued { principal: Text::given(*principal), bytes: *bytes, item });
        }
        queue
    }

    fn items(taken: Vec<Queued<usize>>) -> Vec<usize> {
        taken.into_iter().map(|queued| queued.item).collect()
    }

    #[test]
    fn cheap_commands_travel_together_in_the_order_in_which_they_came() {
        let mut queue = queue(&[("a", 10), ("b", 10), ("a", 10)]);
        assert_eq!(items(take(&mut queue, &Costs::default())), [0, 1, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_expensive_principal_delays_itself_and_no_other() {
        let mut costs = Costs::default();
        costs.note(&Text::given("dear"), SHARE_OF_ENTRY);
        let mut queue = queue(&[("dear", 1), ("dear", 1), ("cheap", 1), ("dear", 1), ("cheap", 1)]);
        assert_eq!(items(take(&mut queue, &costs)), [0, 2, 4]);
        assert_eq!(items(take(&mut queue, &costs)), [1]);
        // Once its commands are cheap again they travel together again.
        for _ in 0..100 {
            costs.note(&Text::given("dear"), Duration::from_micros(1));
        }
        queue.push_back(Queued { principal: Text::given("dear"), bytes: 1, item: 9 });
        assert_eq!(items(take(&mut queue, &costs)), [3, 9]);
        assert!(costs.0.is_empty(), "nothing is remembered of cheap principals");
    }

    #[test]
    fn one_principal_alone_gets_all_of_what_an_entry_may_cost() {
        let many = usize::try_from(SHARE_OF_ENTRY.as_micros() / COST_EXPECTED.as_micros()).unwrap();
        let mut queue = queue(&vec![("a", 1); many + 5]);
        assert_eq!(take(&mut queue, &Costs::default()).len(), many);
        assert_eq!(take(&mut queue, &Costs::default()).len(), 5);
    }

    #[test]
    fn an_entry_is_bounded_in_bytes_but_for_a_single_command() {
        let mut queue = queue(&[("a", ENTRY_BYTES_MAX + 1), ("b", ENTRY_BYTES_MAX), ("c", 1)]);
        for expected in [0, 1, 2] {
            assert_eq!(items(take(&mut queue, &Costs::default())), [expected]);
        }
    }

    #[test]
    fn costs_of_few_principals_are_remembered_the_most_expensive_ones() {
        let mut costs = Costs::default();
        for (number, times) in (0..PRINCIPALS_REMEMBERED_MAX + 10).zip(2..) {
            costs.note(&Text::given(format!("p{number}")), COST_EXPECTED * times);
        }
        assert_eq!(costs.0.len(), PRINCIPALS_REMEMBERED_MAX);
        assert_eq!(costs.expected(&Text::given("p0")), COST_EXPECTED);
    }
}
