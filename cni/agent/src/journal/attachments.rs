//! Map of the node's attachments and pods, as the records of the journal build it.

use std::collections::BTreeMap;

use ipam_api::access::NodeKey;
use ipam_api::limits::JOURNAL_ATTACHMENTS_MAX;
use ipam_api::node_report::Inventory;
use ipam_api::request::AttachmentKey;

use super::pod::{Pod, Pods};
use super::record::{Entry, Key, Phase, Record};

/// Attachments of the node, its boot, and its pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachments {
    boot: Option<(String, u64)>,
    entries: BTreeMap<Key, Entry>,
    pods: Pods,
}

impl Attachments {
    /// Applies a record.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Boot { id, number } => self.boot = Some((id, number)),
            Record::Put(entry) => {
                if !self.entries.get(&entry.key).is_some_and(Entry::is_deleting) {
                    self.entries.insert(entry.key.clone(), entry);
                }
            }
            Record::Attached { key, allocations } => {
                if let Some(entry) = self.without_delete(&key) {
                    entry.phase = Phase::Attached;
                    entry.allocations = allocations;
                }
            }
            Record::Replacing(key) => {
                if let Some(entry) = self.without_delete(&key) {
                    entry.phase = Phase::Adding;
                }
            }
            Record::Missing(key) => {
                if let Some(entry) = self.without_delete(&key) {
                    entry.phase = Phase::Missing;
                }
            }
            Record::Refused(key) => match self.entries.get_mut(&key) {
                Some(entry) if entry.phase != Phase::Adding => {}
                // The refused ADD was a repetition: the cluster still has the allocations of the first one.
                Some(entry) if !entry.allocations.is_empty() => entry.phase = Phase::Attached,
                _ => {
                    self.entries.remove(&key);
                }
            },
            Record::Gone { key, allocations } => {
                if self.without_delete(&key).is_some_and(|entry| entry.allocations == allocations) {
                    self.entries.remove(&key);
                }
            }
            Record::Runtime { key, runtime } => {
                if let Some(entry) = self.without_delete(&key).filter(|entry| entry.runtime.is_empty()) {
                    entry.runtime = runtime;
                }
            }
            Record::Delete { key, release, started } => {
                let phase = Phase::Deleting { release, started };
                let new = || Entry {
                    key: key.clone(),
                    phase: phase.clone(),
                    boot_id: String::new(),
                    runtime: String::new(),
                    netns: None,
                    endpoint: None,
                    uid: None,
                    allocations: Vec::new(),
                };
                self.entries.entry(key.clone()).or_insert_with(new).phase = phase.clone();
            }
            Record::Delivered { key, started: delivered } => {
                let phase = self.entries.get(&key).map(|entry| &entry.phase);
                if matches!(phase, Some(Phase::Deleting { started, .. }) if *started == delivered) {
                    self.entries.remove(&key);
                }
            }
            Record::Pods { put, gone } => {
                gone.iter().for_each(|uid| self.pods.remove(uid));
                put.into_iter().for_each(|pod| self.pods.put(pod));
            }
            Record::PodApplication { uid, application } => self.pods.resolve(&uid, application),
        }
    }

    /// Records that build the same map.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let boot = self.boot.iter().map(|(id, number)| Record::Boot { id: id.clone(), number: *number });
        let pod = |pod: &Pod| Record::Pods { put: vec![pod.clone()], gone: Vec::new() };
        boot.chain(self.entries.values().cloned().map(Record::Put)).chain(self.pods.iter().map(pod))
    }

    /// Pods of the node.
    #[must_use]
    pub fn pods(&self) -> &Pods {
        &self.pods
    }

    /// Current boot with its number, once it is recorded.
    #[must_use]
    pub fn boot(&self) -> Option<&(String, u64)> {
        self.boot.as_ref()
    }

    /// Entry of an attachment.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Number of entries, undelivered DELs among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of attachments that can be added.
    #[must_use]
    pub fn room(&self) -> usize {
        JOURNAL_ATTACHMENTS_MAX.saturating_sub(self.len())
    }

    /// Returns true unless the record adds an attachment beyond the limit.
    #[must_use]
    pub fn has_room_for(&self, record: &Record) -> bool {
        let key = match record {
            Record::Put(Entry { key, .. }) | Record::Delete { key, .. } => key,
            Record::Boot { .. }
            | Record::Attached { .. }
            | Record::Replacing(_)
            | Record::Refused(_)
            | Record::Missing(_)
            | Record::Delivered { .. }
            | Record::Gone { .. }
            | Record::Runtime { .. }
            | Record::Pods { .. }
            | Record::PodApplication { .. } => return true,
        };
        self.room() > 0 || self.entries.contains_key(key)
    }

    /// Returns true without any entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Attachments that the cluster should have, for the digest of a heartbeat.
    #[must_use]
    pub fn inventory(&self, node: &NodeKey) -> Inventory {
        let mut inventory = Inventory::default();
        for entry in self.entries.values() {
            if !entry.allocations.is_empty() && entry.phase != Phase::Missing {
                inventory.add(&entry.key.on(node), entry.allocations.iter().copied());
            }
        }
        inventory
    }

    fn without_delete(&mut self, key: &Key) -> Option<&mut Entry> {
        self.entries.get_mut(key).filter(|entry| !entry.is_deleting())
    }
}

impl Key {
    /// Key of the attachment in the cluster.
    #[must_use]
    pub fn on(&self, node: &NodeKey) -> AttachmentKey {
        let Self { config, container_id, interface } = self.clone();
        AttachmentKey { realm: node.realm.clone(), node: node.name.clone(), config, container_id, interface }
    }
}
