//! No late grant: which requests of an attachment come too late, and what is remembered to know it.
//!
//! Requests say when their process began, on their machine's boot clock. A release buries its attachment:
//! an ADD that began before it is refused whenever it arrives. One that began after it is welcome, with the
//! same container id or not (cnitool and Nomad reuse ids). Of two boots of a node, the later one to be heard
//! of is the present one.

use std::cmp::Ordering;

use ipam_api::limits::{PAST_BOOTS_MAX, TOMBSTONE_TTL_MS, TOMBSTONES_PER_NODE_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;

use super::command::Cause;
use super::command::{Refusal, Started, Text};
use super::model::{Attachment, Boots, Tombstone};
use super::state::State;
use super::step::Step;

impl State {
    /// Refuses an ADD that began before the release of its attachment.
    pub(super) fn check_not_late(&self, key: &AttachmentKey, started: &Started) -> Result<(), Refusal> {
        let tombstone = self.tombstone(key).and_then(|id| self.tombstones.get(id));
        match tombstone {
            Some(tombstone) if self.order(key, started, &tombstone.started).is_le() => {
                Err(Cause::ReleasedSince { attachment: key.clone() }.into())
            }
            _ => Ok(()),
        }
    }

    /// When a request began, compared with what a row keeps, both on the attachment's node.
    pub(super) fn order(&self, key: &AttachmentKey, request: &Started, kept: &Started) -> Ordering {
        if request.boot_id == kept.boot_id {
            return request.at_us.cmp(&kept.at_us);
        }
        let known = self.boots_of(&key.realm, &key.node).map(|(_, row)| row);
        let boots = || known.iter().flat_map(|row| row.past_boots.iter().chain(&row.boot_id));
        let heard = |started: &Started| boots().position(|boot_id| *boot_id == started.boot_id);
        match (heard(request), heard(kept)) {
            // A boot that only the request knows is new; one that only a row still knows is long past.
            (None, _) | (_, None) => Ordering::Greater,
            (Some(request), Some(kept)) => request.cmp(&kept),
        }
    }

    fn tombstone(&self, key: &AttachmentKey) -> Option<u64> {
        self.index.tombstones.find(key, |id| self.tombstones.get(id).map(|row| &row.key))
    }

    /// The boots of a node, as far as they are remembered.
    #[must_use]
    pub fn boots_of(&self, realm: &Name, node: &ObjectName) -> Option<(u64, &Boots)> {
        let id = *self.index.boots.get(&(realm.clone(), node.clone()))?;
        self.boots.get(id).map(|row| (id, row))
    }
}

impl Step<'_> {
    /// Remembers that an attachment was released.
    pub(super) fn bury(&mut self, key: &AttachmentKey, started: &Started) {
        let node = self.note_boot(key, started);
        let earlier = self.state.tombstone(key);
        if let Some(id) = earlier {
            // A later release stands, and so does the same one: a repeated DEL changes nothing.
            let stands = self
                .state
                .tombstones
                .get(id)
                .is_some_and(|row| self.state.order(key, started, &row.started).is_le());
            if stands {
                return;
            }
            self.state.forget_tombstone(id);
        }
        let id = self.state.tick();
        let until_ms = self.state.log_time_ms() + TOMBSTONE_TTL_MS;
        let row = Tombstone { key: key.clone(), started: started.clone(), node, until_ms };
        self.state.tombstones.put(id, row, &mut self.state.ledger);
        self.state.index.tombstones.insert(key, id);
        self.state.index.tombstones_of_node.insert((node, id));
        *self.state.index.tombstone_counts.entry(node).or_insert(0) += 1;
        if self.state.index.tombstone_counts.get(&node).is_some_and(|count| *count > TOMBSTONES_PER_NODE_MAX)
        {
            let oldest = self.state.index.tombstones_of_node.range((node, 0)..).next().map(|(_, id)| *id);
            if let Some(oldest) = oldest {
                self.state.forget_tombstone(oldest);
            }
        }
    }

    /// A repeated ADD that began later than the one before it: the attachment is its own from now on, so that
    /// a DEL from between the two, still on its way, leaves it alone.
    pub(super) fn note_repeat(&mut self, key: &AttachmentKey, started: &Started) {
        let Some((id, row)) = self.state.attachment(key) else { return };
        if self.state.order(key, started, &row.started).is_le() {
            return;
        }
        let row = Attachment { started: started.clone(), ..row.clone() };
        self.state.tick();
        self.note_boot(key, started);
        self.state.attachments.put(id, row, &mut self.state.ledger);
    }

    /// Takes note of the boot that a request comes from; the node's id.
    pub(super) fn note_boot(&mut self, key: &AttachmentKey, started: &Started) -> u64 {
        let boot_id = Text::clone(&started.boot_id);
        let (id, mut row) = match self.state.boots_of(&key.realm, &key.node) {
            Some((id, row)) if row.boot_id.as_ref() == Some(&boot_id) => return id,
            Some((id, row)) if row.past_boots.contains(&boot_id) => return id,
            Some((id, row)) => (id, row.clone()),
            None => {
                let id = self.state.tick();
                self.state.index.boots.insert((key.realm.clone(), key.node.clone()), id);
                let (realm, name) = (key.realm.clone(), key.node.clone());
                (id, Boots { realm, name, boot_id: None, past_boots: Vec::new() })
            }
        };
        row.past_boots.extend(row.boot_id.replace(boot_id));
        let surplus = row.past_boots.len().saturating_sub(PAST_BOOTS_MAX);
        row.past_boots.drain(..surplus);
        self.state.boots.put(id, row, &mut self.state.ledger);
        id
    }
}

impl State {
    /// Forgets that an attachment was released.
    pub(super) fn forget_tombstone(&mut self, id: u64) {
        let Some(row) = self.tombstones.remove(id, &mut self.ledger) else { return };
        self.index.tombstones.remove(&row.key, id);
        self.index.tombstones_of_node.remove(&(row.node, id));
        if let Some(count) = self.index.tombstone_counts.get_mut(&row.node) {
            *count -= 1;
            if *count == 0 {
                self.index.tombstone_counts.remove(&row.node);
            }
        }
    }
}
