//! No late grant: requests that arrive too late for their attachment, detected by stored releases.
//!
//! Requests carry the start of their process on their machine's boot clock. A release leaves a tombstone of
//! its attachment: an ADD that began before the release is refused whenever it arrives. An ADD that began
//! after the release is granted, with the same container id or not (cnitool and Nomad reuse ids).
//!
//! Clocks of two boots can't be compared, and a request of an earlier boot may arrive after the first request
//! of the present one. So a DEL proves that its boot is the present one, because a boot deletes the sandboxes
//! that the previous boot left: all boots seen before the DEL are past. An ADD proves nothing. It makes no
//! other boot's DEL late, and it is refused where another boot has released its attachment, until an earlier
//! process of its own boot was seen (ADR 20). Boots that the node's agent has reported need no proof: the
//! agent numbers them.

use crate::apply::step::Step;
use crate::command::{Cause, Refusal, Started};
use crate::seeded::SeededBug;
use crate::state::State;
use crate::state::id::{BootHistoryId, Id};
use crate::state::key::node_of;
use crate::state::row::{Attachment, Boot, BootHistory, Tombstone};
use ipam_api::limits::{PAST_BOOTS_MAX, TOMBSTONE_TTL_MS, TOMBSTONES_PER_NODE_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use std::cmp::Ordering;

impl State {
    /// Refuses an ADD that began before a release of its attachment, or may have.
    pub(crate) fn check_not_late(&self, key: &AttachmentKey, started: &Started) -> Result<(), Refusal> {
        let Some((_, tombstone)) = self.tombstone(key) else { return Ok(()) };
        if SeededBug::LateGrant.is_on() {
            return Ok(());
        }
        let releases = || tombstone.releases.iter();
        if releases().any(|release| self.order(key, started, release).is_some_and(Ordering::is_le)) {
            return Err(Cause::ReleasedSince { attachment: key.clone() }.into());
        }
        let node = node_of(key);
        let is_of_another = releases().any(|release| {
            release.boot_id != started.boot_id
                && !self.is_present_after(&node, &started.boot_id, &release.boot_id)
        });
        let boots = self.boots_of(&key.realm, &key.node).map(|(_, row)| row);
        // A copy of the same request doesn't prove that its boot is the present one.
        if is_of_another && !boots.is_some_and(|row| row.have_confirmed(started)) {
            return Err(Cause::BootUnconfirmed { attachment: key.clone(), started: started.clone() }.into());
        }
        Ok(())
    }

    /// Order of a request's start and a stored one on the attachment's node. Nothing if the order of their
    /// boots is unknown.
    pub(crate) fn order(&self, key: &AttachmentKey, request: &Started, kept: &Started) -> Option<Ordering> {
        if request.boot_id == kept.boot_id {
            return Some(request.order_in_boot(kept));
        }
        if let Some(order) = self.order_of_boots(&node_of(key), &request.boot_id, &kept.boot_id) {
            return Some(order);
        }
        let (_, boots) = self.boots_of(&key.realm, &key.node)?;
        match (boots.place(request), boots.place(kept)) {
            (Some(request), Some(kept)) if boots.is_past(request.min(kept)) => Some(request.cmp(&kept)),
            // All boots in rows were seen: a forgotten boot is older than all of them.
            (Some(_), None) => Some(Ordering::Greater),
            _ => None,
        }
    }
}

impl BootHistory {
    fn place(&self, started: &Started) -> Option<usize> {
        self.boots.iter().position(|boot| boot.earliest.boot_id == started.boot_id)
    }

    /// Returns true if a later boot has released anything.
    fn is_past(&self, place: usize) -> bool {
        self.boots.iter().skip(place + 1).any(|boot| boot.has_released)
    }

    /// Returns true if an earlier process of the boot was seen since the last release from another boot.
    fn have_confirmed(&self, started: &Started) -> bool {
        let boot = self.place(started).and_then(|place| self.boots.get(place));
        boot.is_some_and(|boot| boot.is_confirmed && boot.earliest.order_in_boot(started).is_lt())
    }

    /// Present boot of the node, according to its requests.
    #[must_use]
    pub fn present(&self) -> Option<&Boot> {
        self.boots.iter().rfind(|boot| boot.has_released).or(self.boots.last())
    }
}

impl Step<'_> {
    /// Writes the tombstone of a released attachment, in place of an earlier one.
    pub(super) fn write_tombstone(&mut self, key: &AttachmentKey, started: &Started) {
        let (node, is_news) = self.hear(key, started, true);
        let earlier = self.state.tombstone(key);
        let before = earlier.map_or(&[][..], |(_, row)| &row.releases);
        let releases = with_release(before, started);
        if before == releases {
            // Neither a repeated DEL nor an older one is another release.
            if is_news {
                self.state.tick();
            }
            return;
        }
        if let Some((id, _)) = earlier {
            self.state.erase::<Tombstone>(id);
        }
        let id = self.state.new_id();
        let until_ms = self.state.log_time_ms() + TOMBSTONE_TTL_MS;
        let row = Tombstone { key: key.clone(), releases, node, until_ms };
        self.state.write(id, row);
        if self.state.index.tombstone_counts.get(&node).is_some_and(|count| *count > TOMBSTONES_PER_NODE_MAX)
        {
            let oldest =
                self.state.index.tombstones_of_node.range((node, Id::MIN)..).next().map(|(_, id)| *id);
            if let Some(oldest) = oldest {
                self.state.erase::<Tombstone>(oldest);
            }
        }
    }

    /// Records a repeated ADD that began later than the recorded one. The attachment then belongs to the
    /// later ADD, so a delayed DEL from between the two ADDs doesn't release the attachment.
    pub(crate) fn note_repeat(&mut self, key: &AttachmentKey, started: &Started) {
        let Some((id, row)) = self.state.attachment(key) else { return };
        if self.state.order(key, started, &row.started) != Some(Ordering::Greater) {
            return;
        }
        let row = Attachment { started: started.clone(), ..row.clone() };
        self.state.tick();
        self.hear(key, started, false);
        self.state.write(id, row);
    }

    /// Records the boot of a refused request.
    pub(crate) fn hear_refused(&mut self, key: &AttachmentKey, started: &Started) {
        if self.hear(key, started, false).1 {
            self.state.tick();
        }
    }

    /// Returns the boots of a node for changes; an empty history with a new id if the node has no row.
    pub(crate) fn boots_or_none(&mut self, realm: &Name, node: &ObjectName) -> (BootHistoryId, BootHistory) {
        let known = self.state.boots_of(realm, node).map(|(id, row)| (id, row.clone()));
        known.unwrap_or_else(|| (self.state.new_id(), BootHistory::of(realm.clone(), node.clone())))
    }

    /// Records the boot of a request. Returns the id of the node's row, and true if the row changed. The
    /// caller raises the revision.
    pub(crate) fn hear(
        &mut self,
        key: &AttachmentKey,
        started: &Started,
        is_release: bool,
    ) -> (BootHistoryId, bool) {
        let (id, before) = self.boots_or_none(&key.realm, &key.node);
        let boots = with_request(&before.boots, started, is_release);
        let is_news = before.boots != boots;
        if is_news {
            self.state.write(id, BootHistory { boots, ..before });
        }
        (id, is_news)
    }
}

/// The boots of a node after one more request.
fn with_request(before: &[Boot], started: &Started, is_release: bool) -> Vec<Boot> {
    let mut boots = before.to_vec();
    let is_own = |boot: &Boot| boot.earliest.boot_id == started.boot_id;
    if is_release {
        // Each other boot must be seen again, or its late ADD would pass the new tombstone.
        boots.iter_mut().filter(|boot| !is_own(boot)).for_each(|boot| boot.is_confirmed = false);
    }
    if let Some(boot) = boots.iter_mut().find(|boot| is_own(boot)) {
        if !boot.is_confirmed || started.order_in_boot(&boot.earliest).is_lt() {
            boot.earliest = started.clone();
        }
        boot.is_confirmed = true;
        boot.has_released |= is_release;
        return boots;
    }
    if boots.len() > PAST_BOOTS_MAX {
        // Boots with a release stay, regardless of the number of others.
        let goes = boots.iter().position(|boot| !boot.has_released).unwrap_or_default();
        boots.remove(goes);
    }
    boots.push(Boot { earliest: started.clone(), is_confirmed: true, has_released: is_release });
    boots
}

/// Adds a release to those of an attachment. Releases of one boot are merged into one that refuses the same
/// ADDs.
///
/// Starts with and without a kernel tick stay apart, since neither kind refuses all that the other does.
fn with_release(before: &[Started], started: &Started) -> Vec<Started> {
    let is_alike = |one: &Started| {
        one.boot_id == started.boot_id && one.start_ticks.is_some() == started.start_ticks.is_some()
    };
    let mut releases = before.to_vec();
    let Some(one) = releases.iter_mut().find(|one| is_alike(one)) else {
        releases.push(started.clone());
        let surplus = releases.len().saturating_sub(PAST_BOOTS_MAX + 1);
        releases.drain(..surplus);
        return releases;
    };
    one.at_us = one.at_us.max(started.at_us);
    one.start_ticks = one.start_ticks.max(started.start_ticks);
    releases
}
