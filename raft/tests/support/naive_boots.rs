//! The model's memory of boots and releases: which requests come too late.

use ipam_api::limits::{PAST_BOOTS_MAX, TOMBSTONE_TTL_MS};
use ipam_api::request::AttachmentKey;
use ipam_raft::machine::command::Started;

use crate::naive::{Buried, Model};

impl Model {
    pub(crate) fn note_boot(&mut self, key: &AttachmentKey, started: &Started) {
        let boots = self.boots.entry(key.node.clone()).or_default();
        if !boots.contains(&started.boot_id) {
            boots.push(started.boot_id.clone());
            let surplus = boots.len().saturating_sub(PAST_BOOTS_MAX + 1);
            boots.drain(..surplus);
        }
    }

    /// Whether a request began before what is kept; equal is neither.
    pub(crate) fn began(&self, key: &AttachmentKey, request: &Started, kept: &Started) -> std::cmp::Ordering {
        let boots = self.boots.get(&key.node).cloned().unwrap_or_default();
        let age = |started: &Started| boots.iter().position(|boot| *boot == started.boot_id);
        if request.boot_id == kept.boot_id {
            request.at_us.cmp(&kept.at_us)
        } else if age(request).is_some() && age(kept).is_some() {
            age(request).cmp(&age(kept))
        } else {
            std::cmp::Ordering::Greater
        }
    }

    pub(crate) fn bury(&mut self, key: &AttachmentKey, started: &Started) {
        self.note_boot(key, started);
        let before = self.buried.iter().position(|one| one.key == *key);
        if let Some(i) = before {
            if self.began(key, started, &self.buried[i].started).is_le() {
                return;
            }
            self.buried.remove(i);
        }
        let until_ms = self.now + TOMBSTONE_TTL_MS;
        self.buried.push(Buried { key: key.clone(), started: started.clone(), until_ms });
    }
}
