//! View of a resource that the servers mirror.

use std::collections::BTreeSet;

use ipam_api::limits::KUBERNETES_FACTS_MAX;
use ipam_api::name::ObjectName;
use kube::runtime::watcher::Event;

use super::step::Wanted;
use crate::listed::{Change, Listed};

/// View of a resource that the servers mirror.
#[derive(Debug)]
pub(crate) struct Mirrored<V> {
    pub(crate) listed: Listed<ObjectName, V>,
    /// Names whose mirror may differ.
    pub(crate) changed: BTreeSet<ObjectName>,
    /// Names of objects whose deletion is known.
    gone: BTreeSet<ObjectName>,
}

/// Effects of an event.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Names of changed and deleted objects.
    pub(crate) names: Vec<ObjectName>,
    /// True if a list lacks a known object, which is no evidence.
    pub(crate) lacks: bool,
}

impl<V> Default for Mirrored<V> {
    fn default() -> Self {
        Self { listed: Listed::default(), changed: BTreeSet::new(), gone: BTreeSet::new() }
    }
}

impl<V: Clone + PartialEq> Mirrored<V> {
    /// Applies an event.
    pub(crate) fn event(&mut self, event: Event<Option<(ObjectName, V)>>) -> Effects {
        let mut effects = Effects::default();
        for change in self.listed.event(event) {
            match change {
                Change::Put(name, _) => {
                    self.gone.remove(&name);
                    self.changed.insert(name.clone());
                    effects.names.push(name);
                }
                Change::Deleted(name, _) => {
                    self.end(name.clone());
                    effects.names.push(name);
                }
                Change::Missing(..) => effects.lacks = true,
            }
        }
        effects
    }

    /// Records the deletion of an object.
    pub(crate) fn end(&mut self, name: ObjectName) {
        self.changed.insert(name.clone());
        self.gone.insert(name);
        if self.gone.len() > KUBERNETES_FACTS_MAX {
            self.gone.pop_first();
        }
    }

    /// True if the deletion of the object is known.
    pub(crate) fn is_gone(&self, name: &ObjectName) -> bool {
        self.gone.contains(name)
    }

    /// Object with this name.
    pub(crate) fn wanted(&self, name: &ObjectName) -> Wanted<V> {
        match self.listed.get(name) {
            Some(facts) => Wanted::Present(facts.clone()),
            None if self.is_gone(name) => Wanted::Gone,
            None => Wanted::Unknown,
        }
    }
}
