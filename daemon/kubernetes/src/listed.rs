//! Objects of one resource as the list and the watch show them.

use std::collections::BTreeMap;

use kube::runtime::watcher::Event;

/// Objects by their keys.
#[derive(Debug)]
pub(crate) struct Listed<K, V> {
    objects: BTreeMap<K, V>,
    listing: Option<BTreeMap<K, V>>,
    is_synced: bool,
}

/// Change of the objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change<K, V> {
    /// The object is new or differs from the former one.
    Put(K, Option<V>),
    /// The watch has reported the deletion.
    Deleted(K, V),
    /// A list lacks the object, which is no evidence: the list may be stale.
    Missing(K, V),
}

impl<K, V> Default for Listed<K, V> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listing: None, is_synced: false }
    }
}

impl<K: Ord + Clone, V: PartialEq> Listed<K, V> {
    /// Applies an event, and returns the changes.
    pub(crate) fn event(&mut self, event: Event<Option<(K, V)>>) -> Vec<Change<K, V>> {
        match event {
            Event::Init => {
                self.listing = Some(BTreeMap::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listing.get_or_insert_default().extend(object);
                Vec::new()
            }
            Event::InitDone => self.replace(),
            Event::Apply(object) => {
                object.and_then(|(key, object)| self.put(key, object)).into_iter().collect()
            }
            Event::Delete(object) => {
                let deleted = object.map(|(key, object)| {
                    self.objects.remove(&key);
                    Change::Deleted(key, object)
                });
                deleted.into_iter().collect()
            }
        }
    }

    fn replace(&mut self) -> Vec<Change<K, V>> {
        let listed = self.listing.take().unwrap_or_default();
        self.is_synced = true;
        let missing: Vec<K> = self.objects.keys().filter(|key| !listed.contains_key(key)).cloned().collect();
        let removed = missing.into_iter().filter_map(|key| {
            let object = self.objects.remove(&key)?;
            Some(Change::Missing(key, object))
        });
        let removed: Vec<_> = removed.collect();
        let put: Vec<_> = listed.into_iter().filter_map(|(key, object)| self.put(key, object)).collect();
        removed.into_iter().chain(put).collect()
    }

    fn put(&mut self, key: K, object: V) -> Option<Change<K, V>> {
        if self.objects.get(&key) == Some(&object) {
            return None;
        }
        let former = self.objects.insert(key.clone(), object);
        Some(Change::Put(key, former))
    }

    /// True if an object of this key is within the limit. The objects of an incomplete list are counted
    /// separately.
    pub(crate) fn has_room(&self, key: &K, objects_max: usize) -> bool {
        let objects = self.listing.as_ref().unwrap_or(&self.objects);
        objects.contains_key(key) || objects.len() < objects_max
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.objects.get(key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.objects.keys()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.objects.values()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.objects.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// True once a list was complete.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_the_objects_and_deletes_none() {
        let mut listed = Listed::default();
        assert!(!listed.is_synced());
        let mut all = Vec::new();
        for event in [
            Event::Init,
            Event::InitApply(Some(("a", 1))),
            Event::InitApply(Some(("b", 1))),
            Event::InitDone,
            Event::Apply(Some(("a", 2))),
            Event::Apply(Some(("a", 2))),
            Event::Delete(Some(("a", 3))),
            Event::Delete(None),
            Event::Init,
            Event::InitApply(Some(("c", 1))),
            Event::InitDone,
        ] {
            all.extend(listed.event(event));
        }
        assert_eq!(
            all,
            [
                Change::Put("a", None),
                Change::Put("b", None),
                Change::Put("a", Some(1)),
                Change::Deleted("a", 3),
                Change::Missing("b", 1),
                Change::Put("c", None),
            ]
        );
        assert!(listed.is_synced());
        assert_eq!(listed.keys().collect::<Vec<_>>(), [&"c"]);
    }

    #[test]
    fn the_number_of_objects_is_bounded_and_so_is_that_of_a_list() {
        let mut listed = Listed::default();
        let room = |listed: &Listed<_, _>| ["a", "b", "c"].map(|key| listed.has_room(&key, 2));
        listed.event(Event::Apply(Some(("a", 1))));
        assert_eq!(room(&listed), [true, true, true]);
        listed.event(Event::Apply(Some(("b", 1))));
        assert_eq!(room(&listed), [true, true, false]);
        listed.event(Event::Init);
        assert_eq!(room(&listed), [true, true, true]);
        for key in ["b", "c"] {
            listed.event(Event::InitApply(Some((key, 1))));
        }
        assert_eq!(room(&listed), [false, true, true]);
    }
}
