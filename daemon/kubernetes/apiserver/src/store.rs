//! Objects with one counter of resource versions, and the changes that watches replay.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::path::Place;
use crate::resources::DEFINITIONS;

/// Changes that are kept for watches.
const CHANGES_MAX: usize = 10_000;

/// Identity of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Change of an object.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Value>,
    /// Object after the change; after a deletion, its last state with the version of the deletion.
    pub(crate) after: Value,
    pub(crate) is_deleted: bool,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) objects: BTreeMap<Key, Value>,
    pub(crate) version: u64,
    /// Versions up to this one are forgotten.
    pub(crate) compacted: u64,
    changes: VecDeque<Change>,
}

impl Default for Store {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), version: 1, compacted: 0, changes: VecDeque::new() }
    }
}

impl Key {
    pub(crate) fn of(place: &Place, namespace: &str, name: &str) -> Self {
        let (group, plural) = (place.resource.group.clone(), place.resource.plural.clone());
        Self { group, plural, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub(crate) fn namespace(name: &str) -> Self {
        let none = String::new;
        Self { group: none(), plural: "namespaces".to_owned(), namespace: none(), name: name.to_owned() }
    }

    pub(crate) fn definition(name: &str) -> Self {
        let (group, plural) = (DEFINITIONS.0.to_owned(), DEFINITIONS.1.to_owned());
        Self { group, plural, namespace: String::new(), name: name.to_owned() }
    }

    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.group.is_empty() && self.plural == "pods"
    }

    pub(crate) fn is_definition(&self) -> bool {
        (self.group.as_str(), self.plural.as_str()) == DEFINITIONS
    }

    /// Returns true for an object of the collection.
    pub(crate) fn is_in(&self, place: &Place) -> bool {
        self.group == place.resource.group
            && self.plural == place.resource.plural
            && place.namespace.as_ref().is_none_or(|namespace| *namespace == self.namespace)
            && place.name.as_ref().is_none_or(|name| *name == self.name)
    }
}

impl Store {
    /// Writes an object under the next version, and returns it.
    pub(crate) fn put(&mut self, key: Key, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let before = self.objects.insert(key.clone(), object.clone());
        let version = self.version;
        self.record(Change { version, key, before, after: object.clone(), is_deleted: false });
        object
    }

    /// Removes an object, and returns it with the version of its deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Value> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut after = before.clone();
        after["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let (version, key) = (self.version, key.clone());
        self.record(Change { version, key, before: Some(before), after: after.clone(), is_deleted: true });
        Some(after)
    }

    fn record(&mut self, change: Change) {
        self.changes.push_back(change);
        if self.changes.len() > CHANGES_MAX
            && let Some(forgotten) = self.changes.pop_front()
        {
            self.compacted = forgotten.version;
        }
    }

    /// Forgets all changes. The version increases, so that all earlier versions are too old.
    pub(crate) fn compact(&mut self) {
        self.version += 1;
        self.compacted = self.version;
        self.changes.clear();
    }

    /// Key of the object with a uid.
    pub(crate) fn key_of(&self, uid: &Value) -> Option<Key> {
        let found = self.objects.iter().find(|(_, object)| object["metadata"]["uid"] == *uid);
        found.map(|(key, _)| key.clone())
    }

    /// Objects of a collection at a version that isn't forgotten; none if they have not changed since.
    pub(crate) fn at(&self, version: u64, place: &Place) -> Option<BTreeMap<Key, Value>> {
        let later = self.changes.iter().rev().take_while(|change| change.version > version);
        let mut later = later.filter(|change| change.key.is_in(place)).peekable();
        later.peek()?;
        let of_place = self.objects.iter().filter(|(key, _)| key.is_in(place));
        let mut objects: BTreeMap<Key, Value> =
            of_place.map(|(key, object)| (key.clone(), object.clone())).collect();
        for change in later {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    /// First change of a collection after a version.
    pub(crate) fn change_after(&self, version: u64, place: &Place) -> Option<&Change> {
        let from = self.changes.partition_point(|change| change.version <= version);
        self.changes.range(from..).find(|change| change.key.is_in(place))
    }
}
