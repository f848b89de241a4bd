//! Queue of due keys without duplicates, in the order of their arrival.

use std::collections::{BTreeSet, VecDeque};

/// Keys that are due.
#[derive(Debug)]
pub(super) struct Queue<K> {
    order: VecDeque<K>,
    members: BTreeSet<K>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self { order: VecDeque::new(), members: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// Adds a key at the end, unless it is due already.
    pub(super) fn insert(&mut self, key: K) {
        if self.members.insert(key.clone()) {
            self.order.push_back(key);
        }
    }

    /// Takes the first key that is not busy.
    pub(super) fn take(&mut self, busy: &BTreeSet<K>) -> Option<K> {
        let at = self.order.iter().position(|key| !busy.contains(key))?;
        let key = self.order.remove(at)?;
        self.members.remove(&key);
        Some(key)
    }
}

impl<K: Ord + Clone> Extend<K> for Queue<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.insert(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_in_the_order_of_arrival_and_busy_ones_later() {
        let mut queue = Queue::default();
        queue.extend(["m-9", "m-10", "m-9", "m-1"]);
        let busy = ["m-9"].into();
        assert_eq!(queue.take(&busy), Some("m-10"));
        queue.insert("m-10");
        let idle = BTreeSet::new();
        let rest: Vec<_> = std::iter::from_fn(|| queue.take(&idle)).collect();
        assert_eq!(rest, ["m-9", "m-1", "m-10"]);
    }
}
