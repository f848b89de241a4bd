//! The model's memory of boots and releases: which requests come too late.

use std::cmp::Ordering;

use ipam_api::Code;
use ipam_api::limits::{PAST_BOOTS_MAX, TOMBSTONE_TTL_MS};
use ipam_api::request::AttachmentKey;
use ipam_machine::Action;
use ipam_machine::command::{OnLinks, Started, Text};

use crate::model::naive::agent::node_of;
use crate::model::naive::{Model, Tombstone};

/// One boot of a node, with all that was heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boot {
    pub(crate) id: Text,
    /// The earliest process since the last DEL of another boot.
    pub(crate) heard: Option<Started>,
    pub(crate) has_released: bool,
}

/// Order of two processes of one boot.
fn order(one: &Started, other: &Started) -> Ordering {
    let ticks =
        one.start_ticks.zip(other.start_ticks).map_or(Ordering::Equal, |(one, other)| one.cmp(&other));
    ticks.then(one.at_us.cmp(&other.at_us))
}

fn place(boots: &[Boot], started: &Started) -> Option<usize> {
    boots.iter().position(|boot| boot.id == started.boot_id)
}

impl Model {
    pub(crate) fn hear(&mut self, key: &AttachmentKey, started: &Started, is_release: bool) {
        let boots = self.boots.entry(node_of(key)).or_default();
        if boots.iter().all(|boot| boot.id != started.boot_id) {
            if boots.len() == PAST_BOOTS_MAX + 1 {
                let goes = boots.iter().position(|boot| !boot.has_released).unwrap_or(0);
                boots.remove(goes);
            }
            boots.push(Boot { id: started.boot_id.clone(), heard: None, has_released: false });
        }
        for boot in boots {
            if boot.id == started.boot_id {
                if boot.heard.as_ref().is_none_or(|earliest| order(started, earliest).is_lt()) {
                    boot.heard = Some(started.clone());
                }
                boot.has_released |= is_release;
            } else if is_release {
                boot.heard = None;
            }
        }
    }

    /// Returns true if one process is known to have begun before another, on one node.
    pub(crate) fn began_before(&self, key: &AttachmentKey, one: &Started, other: &Started) -> bool {
        if one.boot_id == other.boot_id {
            return order(one, other).is_lt();
        }
        if let Some(order) = self.reported_order(key, one, other) {
            return order.is_lt();
        }
        let boots = self.boots.get(&node_of(key)).map(Vec::as_slice).unwrap_or_default();
        match (place(boots, one), place(boots, other)) {
            (Some(one), Some(other)) => one < other && boots[one + 1..].iter().any(|boot| boot.has_released),
            _ => false,
        }
    }

    /// Returns true if a start of an attachment is of a forgotten boot, while another boot is known.
    pub(crate) fn is_forgotten(&self, key: &AttachmentKey, living: &Started, other: &Started) -> bool {
        let boots = self.boots.get(&node_of(key)).map(Vec::as_slice).unwrap_or_default();
        self.reported_order(key, living, other).is_none()
            && place(boots, living).is_none()
            && place(boots, other).is_some()
    }

    pub(crate) fn check_not_late(&self, key: &AttachmentKey, started: &Started) -> Result<(), Code> {
        let Some(tombstone) = self.tombstones.iter().find(|one| one.key == *key) else { return Ok(()) };
        let same = |release: &&Started| release.boot_id == started.boot_id;
        let (own, others): (Vec<_>, Vec<_>) = tombstone.releases.iter().partition(same);
        if own.iter().any(|release| !order(started, release).is_gt())
            || others.iter().any(|release| self.began_before(key, started, release))
        {
            return Err(Code::AttachmentReleased);
        }
        let boots = self.boots.get(&node_of(key)).map(Vec::as_slice).unwrap_or_default();
        let is_known = |release: &&&Started| {
            self.is_of_present_boot(key, started) && self.reported_order(key, release, started).is_some()
        };
        let others: Vec<_> = others.iter().filter(|release| !is_known(release)).collect();
        let heard = place(boots, started).and_then(|place| boots[place].heard.as_ref());
        match others.is_empty() || heard.is_some_and(|earlier| order(earlier, started).is_lt()) {
            true => Ok(()),
            false => Err(Code::BootUnconfirmed),
        }
    }

    /// The trace of a refusal: the boot that it was refused for has been heard.
    pub(crate) fn refused(&mut self, action: &Action, code: Code) -> Code {
        if code == Code::BootUnconfirmed
            && let Action::Allocate(request) | Action::AllocateOnLinks(OnLinks(request)) = action
            && let (Some(key), Some(started)) = (&request.attachment, &request.started)
        {
            self.hear(key, started, false);
        }
        code
    }

    pub(crate) fn write_tombstone(&mut self, key: &AttachmentKey, started: &Started) {
        self.hear(key, started, true);
        let place = self.tombstones.iter().position(|one| one.key == *key);
        let before = place.map(|i| self.tombstones[i].releases.clone()).unwrap_or_default();
        let mut releases = before.clone();
        let alike = |one: &&mut Started| {
            one.boot_id == started.boot_id && one.start_ticks.is_none() == started.start_ticks.is_none()
        };
        match releases.iter_mut().find(alike) {
            Some(one) => {
                one.at_us = one.at_us.max(started.at_us);
                one.start_ticks = one.start_ticks.max(started.start_ticks);
            }
            None => releases.push(started.clone()),
        }
        if releases.len() > PAST_BOOTS_MAX + 1 {
            releases.remove(0);
        }
        if releases != before {
            if let Some(i) = place {
                self.tombstones.remove(i);
            }
            let until_ms = self.now + TOMBSTONE_TTL_MS;
            self.tombstones.push(Tombstone { key: key.clone(), releases, until_ms });
        }
    }
}
