//! Keys by a group, so that a change of the group finds them without a scan.

use std::collections::{BTreeMap, BTreeSet};

/// Keys by their groups.
#[derive(Debug)]
pub(super) struct Index<G, K>(BTreeMap<G, BTreeSet<K>>);

impl<G, K> Default for Index<G, K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<G: Ord, K: Ord> Index<G, K> {
    pub(super) fn insert(&mut self, group: G, key: K) {
        self.0.entry(group).or_default().insert(key);
    }

    pub(super) fn remove(&mut self, group: &G, key: &K) {
        if let Some(keys) = self.0.get_mut(group) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(group);
            }
        }
    }

    /// Keys of a group.
    pub(super) fn of(&self, group: &G) -> impl Iterator<Item = &K> {
        self.0.get(group).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_keys_is_gone() {
        let mut index = Index::default();
        index.insert("web", 1);
        index.insert("web", 2);
        index.remove(&"web", &1);
        index.remove(&"other", &1);
        assert_eq!(index.of(&"web").collect::<Vec<_>>(), [&2]);
        index.remove(&"web", &2);
        assert!(index.0.is_empty());
    }
}
