//! Deficit round robin: lanes take turns, and each turn has the same weight.
//!
//! A lane gets an item first, and then skips turns until the item's weight is paid. So a lane of heavy items
//! gets the same weight as a lane of light items. An item waits for at most one turn of each other lane,
//! beside the items ahead of it and the debt of its own lane.

use std::collections::{BTreeMap, VecDeque};

/// Weight of one turn.
pub(super) const TURN: usize = 16;
/// Number of lanes, beyond twice the busy ones, above which lanes without items are removed.
const IDLE_LANES_MAX: usize = 16;

/// A sequence of items with weights.
pub(super) trait Lane {
    type Item;
    /// The next item.
    fn front(&mut self) -> Option<&Self::Item>;
    /// Takes the next item, with its weight.
    fn pop(&mut self) -> Option<(usize, Self::Item)>;
    /// Returns true if there are no items.
    fn is_empty(&self) -> bool;
}

/// Lanes that take turns. A lane without items stays until its turn comes or no lane has items.
///
/// The lane keeps its debt that way, and no key has to be searched.
#[derive(Debug)]
pub(super) struct Ring<K, L> {
    lanes: BTreeMap<K, Paying<L>>,
    /// Keys of all lanes, in the order of their turns.
    turns: VecDeque<K>,
    /// Number of lanes with items.
    busy: usize,
    /// Number of lanes that were set aside.
    aside: usize,
}

/// A lane with its account.
#[derive(Debug)]
pub(super) struct Paying<L> {
    pub(super) lane: L,
    /// Weight of the lane's items.
    pub(super) weight: usize,
    /// Number of the lane's items.
    pub(super) items: usize,
    /// Unpaid weight.
    pub(super) debt: usize,
}

impl<K, L> Default for Ring<K, L> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), turns: VecDeque::new(), busy: 0, aside: 0 }
    }
}

impl<K: Ord + Clone, L: Lane + Default> Ring<K, L> {
    /// Lane of a key, to which an item of this weight is added.
    pub(super) fn add(&mut self, key: &K, weight: usize) -> &mut L {
        if !self.lanes.contains_key(key) {
            self.turns.push_back(key.clone());
        }
        let paying = self.lanes.entry(key.clone()).or_insert_with(|| Paying {
            lane: L::default(),
            weight: 0,
            items: 0,
            debt: 0,
        });
        if paying.items == 0 {
            self.busy += 1;
        }
        paying.items += 1;
        paying.weight += weight;
        &mut paying.lane
    }

    /// Removes an item from the lane of a key: `remove` returns its weight.
    pub(super) fn remove(&mut self, key: &K, remove: impl FnOnce(&mut L) -> Option<usize>) -> Option<usize> {
        let paying = self.lanes.get_mut(key)?;
        let weight = remove(&mut paying.lane)?;
        let is_empty = paying.note_gone(weight);
        self.note_empty(is_empty);
        // Many keys may be added and removed while no item is taken.
        if self.lanes.len() > IDLE_LANES_MAX + 2 * self.busy {
            self.lanes.retain(|_, paying| paying.items > 0);
            self.turns.retain(|key| self.lanes.contains_key(key));
        }
        Some(weight)
    }

    /// The lane of a key.
    pub(super) fn get(&self, key: &K) -> Option<&Paying<L>> {
        self.lanes.get(key)
    }

    /// Number of lanes with items.
    pub(super) fn len(&self) -> usize {
        self.busy
    }

    /// Returns the key of the lane whose turn it is; the lane has items.
    pub(super) fn turn(&mut self) -> Option<&K> {
        if self.busy == 0 {
            return None;
        }
        while let Some(key) = self.turns.front()
            && let Some(paying) = self.lanes.get_mut(key)
        {
            if paying.debt >= TURN {
                paying.debt -= TURN;
                self.turns.rotate_left(1);
            } else if paying.items == 0 {
                self.lanes.remove(key);
                self.turns.pop_front();
            } else {
                break;
            }
        }
        self.turns.front()
    }

    /// Takes the lane whose turn it is out of the ring.
    pub(super) fn set_aside(&mut self) -> Option<(K, Paying<L>)> {
        let key = self.turn()?.clone();
        self.turns.pop_front();
        let paying = self.lanes.remove(&key)?;
        self.busy = self.busy.saturating_sub(1);
        self.aside += 1;
        Some((key, paying))
    }

    /// Returns a lane that was set aside to the ring, behind all others.
    pub(super) fn put_back(&mut self, (key, paying): (K, Paying<L>)) {
        self.turns.push_back(key.clone());
        self.lanes.insert(key, paying);
        self.busy += 1;
        self.aside = self.aside.saturating_sub(1);
    }

    /// Forgets debts once there are no items: no lane waited for another one.
    fn note_empty(&mut self, is_empty: bool) {
        if is_empty {
            self.busy = self.busy.saturating_sub(1);
        }
        if self.busy == 0 && self.aside == 0 {
            self.lanes.clear();
            self.turns.clear();
        }
    }
}

impl<L> Paying<L> {
    /// Notes that an item of this weight was removed; returns true if it was the last one.
    fn note_gone(&mut self, weight: usize) -> bool {
        self.weight = self.weight.saturating_sub(weight);
        self.items = self.items.saturating_sub(1);
        self.items == 0
    }
}

impl<K: Ord + Clone, L: Lane + Default> Lane for Ring<K, L> {
    type Item = L::Item;

    fn front(&mut self) -> Option<&L::Item> {
        let key = self.turn()?.clone();
        self.lanes.get_mut(&key)?.lane.front()
    }

    fn pop(&mut self) -> Option<(usize, L::Item)> {
        let key = self.turn()?.clone();
        let paying = self.lanes.get_mut(&key)?;
        let (weight, item) = paying.lane.pop()?;
        paying.debt += weight;
        let is_empty = paying.note_gone(weight);
        self.note_empty(is_empty);
        Some((weight, item))
    }

    fn is_empty(&self) -> bool {
        self.busy == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lane for VecDeque<usize> {
        type Item = usize;

        fn front(&mut self) -> Option<&usize> {
            VecDeque::front(self)
        }

        fn pop(&mut self) -> Option<(usize, usize)> {
            self.pop_front().map(|weight| (weight, weight))
        }

        fn is_empty(&self) -> bool {
            VecDeque::is_empty(self)
        }
    }

    type OfNumbers = Ring<u32, VecDeque<usize>>;

    fn add(ring: &mut OfNumbers, key: u32, weight: usize) {
        ring.add(&key, weight).push_back(weight);
    }

    #[test]
    fn a_lane_with_one_heavy_item_at_a_time_keeps_its_debt() {
        const HEAVY: usize = 16 * TURN + 1;
        let mut ring = OfNumbers::default();
        (0..2_000).for_each(|_| add(&mut ring, 1, 1));
        add(&mut ring, 2, HEAVY);
        let mut heavy = 0;
        for _ in 0..2_000 {
            let (weight, _) = ring.pop().unwrap();
            if weight == HEAVY {
                heavy += weight;
                // Its next one comes as soon as it can.
                add(&mut ring, 2, HEAVY);
            }
        }
        assert!((1_700..=2_300).contains(&heavy), "{heavy} beside about 2000");
    }

    #[test]
    fn debts_end_with_the_last_item() {
        let mut ring = OfNumbers::default();
        add(&mut ring, 1, 100 * TURN);
        ring.pop().unwrap();
        assert!(ring.is_empty() && ring.lanes.is_empty() && ring.turns.is_empty());
        add(&mut ring, 2, 3 * TURN);
        add(&mut ring, 1, 2);
        assert_eq!(ring.pop(), Some((3 * TURN, 3 * TURN)));
        let aside = ring.set_aside().unwrap();
        assert!(ring.pop().is_none() && !ring.lanes.is_empty(), "an item is left");
        ring.put_back(aside);
        assert_eq!((ring.len(), ring.pop()), (1, Some((2, 2))));
        assert!(ring.lanes.is_empty());
    }

    #[test]
    fn keys_that_come_and_go_leave_nothing_behind_and_have_one_turn() {
        let mut ring = OfNumbers::default();
        add(&mut ring, 0, 1);
        for key in 1..1_000 {
            add(&mut ring, key, 1);
            ring.remove(&key, VecDeque::pop_front).unwrap();
        }
        assert!(ring.lanes.len() <= IDLE_LANES_MAX + 2 && ring.turns.len() == ring.lanes.len());
        for _ in 0..3 {
            add(&mut ring, 1_000, 1);
            ring.remove(&1_000, VecDeque::pop_front).unwrap();
        }
        assert_eq!(ring.turns.iter().filter(|key| **key == 1_000).count(), 1);
        assert_eq!((ring.len(), ring.pop()), (1, Some((1, 1))));
        assert!(ring.pop().is_none());
    }
}
