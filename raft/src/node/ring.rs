//! Deficit round robin: lanes take turns, and each turn has the same weight.
//!
//! A lane pays for an item when it is taken, and passes its turns until it has paid. So a lane of heavy items
//! gets the same weight as one of light items, and an item never waits for more than a turn of each other
//! lane beside what its own lane has ahead.

use std::collections::{BTreeMap, VecDeque};

/// Weight of one turn.
pub(super) const TURN: usize = 16;

/// A sequence of items with weights.
pub(super) trait Lane {
    type Item;
    /// The next item.
    fn front(&mut self) -> Option<&Self::Item>;
    /// Takes the next item, with its weight.
    fn pop(&mut self) -> Option<(usize, Self::Item)>;
    /// True without items.
    fn is_empty(&self) -> bool;
}

/// Lanes that take turns. A lane exists while it has items.
#[derive(Debug)]
pub(super) struct Ring<K, L> {
    lanes: BTreeMap<K, Paying<L>>,
    turns: VecDeque<K>,
}

/// A lane with its account.
#[derive(Debug)]
pub(super) struct Paying<L> {
    pub(super) lane: L,
    /// Weight of its items.
    pub(super) weight: usize,
    /// Unpaid weight.
    debt: usize,
}

impl<K, L> Default for Ring<K, L> {
    fn default() -> Self {
        Self { lanes: BTreeMap::new(), turns: VecDeque::new() }
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
            debt: 0,
        });
        paying.weight += weight;
        &mut paying.lane
    }

    /// Removes an item from the lane of a key: `remove` returns its weight.
    pub(super) fn remove(&mut self, key: &K, remove: impl FnOnce(&mut L) -> Option<usize>) -> Option<usize> {
        let paying = self.lanes.get_mut(key)?;
        let weight = remove(&mut paying.lane)?;
        paying.weight = paying.weight.saturating_sub(weight);
        if paying.lane.is_empty() {
            self.lanes.remove(key);
            self.turns.retain(|turn| turn != key);
        }
        Some(weight)
    }

    /// The lane of a key.
    pub(super) fn get(&self, key: &K) -> Option<&Paying<L>> {
        self.lanes.get(key)
    }

    /// Number of lanes.
    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Key of the lane whose turn it is.
    pub(super) fn turn(&mut self) -> Option<&K> {
        while let Some(paying) = self.turns.front().and_then(|key| self.lanes.get_mut(key))
            && paying.debt >= TURN
        {
            paying.debt -= TURN;
            self.turns.rotate_left(1);
        }
        self.turns.front()
    }

    /// Takes the lane whose turn it is out of the ring.
    pub(super) fn set_aside(&mut self) -> Option<(K, Paying<L>)> {
        let key = self.turn()?.clone();
        self.turns.pop_front();
        let paying = self.lanes.remove(&key)?;
        Some((key, paying))
    }

    /// Puts such a lane back, behind all others.
    pub(super) fn put_back(&mut self, (key, paying): (K, Paying<L>)) {
        self.turns.push_back(key.clone());
        self.lanes.insert(key, paying);
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
        paying.weight = paying.weight.saturating_sub(weight);
        paying.debt += weight;
        if paying.lane.is_empty() {
            self.lanes.remove(&key);
            self.turns.pop_front();
        }
        Some((weight, item))
    }

    fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}
