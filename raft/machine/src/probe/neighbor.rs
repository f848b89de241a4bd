//! Neighbors: stations that answer for allocated addresses, and their silence on silent nodes.

use crate::apply::step::Step;
use crate::event::{EventKind, Reason};
use crate::probe::report::{Effect, Report};
use crate::state::State;
use crate::state::id::{AllocationId, NetworkId};
use crate::state::row::{Allocation, Neighbor, Silence};
use ipam_api::access::NodeKey;
use ipam_api::limits::{
    COLLISION_MS, HEARD_BY_MAX, PROBER_SILENCE_MS_MAX, SILENT_ROUND_MS_MIN, SILENT_ROUNDS,
};
use ipam_api::mac::MacAddress;
use std::net::IpAddr;

impl Step<'_> {
    /// Result of a prober for an allocated address.
    pub(super) fn see(
        &mut self,
        report: &Report<'_>,
        id: AllocationId,
        (network, address): (NetworkId, IpAddr),
        macs: &[MacAddress],
    ) -> Effect {
        let row = self.state.allocations.named(id).clone();
        let old = self.state.neighbors.get(id).cloned();
        let Some(mac) = macs.first() else {
            let alive =
                self.state.subnet_at(network, address).is_some_and(|(id, _)| report.alive.contains(&id));
            let silent = old.filter(|_| alive).and_then(|old| self.silent_once_more(old, &row, report.node));
            return match silent {
                Some(silent) => {
                    self.state.write(id, silent);
                    Effect::Recorded
                }
                None => Effect::Nothing,
            };
        };
        let new = self.state.neighbor_after(old.as_ref(), &row, (*mac, macs.get(1).copied()), report.node);
        if old.as_ref() == Some(&new) {
            return Effect::Nothing;
        }
        let before = old.filter(|old| old.attachment == new.attachment).and_then(|old| old.other);
        if let Some(other) = new.other.filter(|_| before.is_none()) {
            self.collide(id, &row, (new.mac, other), report.node);
        }
        self.state.write(id, new);
        Effect::Recorded
    }

    /// Returns the neighbor after one more silent round, or none if the round proves nothing.
    fn silent_once_more(&self, mut row: Neighbor, of: &Allocation, node: &NodeKey) -> Option<Neighbor> {
        let of_node = self.state.node_of(of)?;
        if !self.state.is_suspect(of) || !row.heard_by.contains(node) || row.attachment != of.attachment {
            return None;
        }
        let now_ms = self.state.log_time_ms();
        let since_ms = self.state.report_of(&of_node).map_or(0, |(_, report)| report.heard_ms);
        match row.silence.iter_mut().find(|silence| silence.node == *node) {
            Some(silence) if now_ms < silence.last_ms.saturating_add(SILENT_ROUND_MS_MIN) => return None,
            Some(silence) => {
                let continues = silence.is_recent(now_ms) && silence.last_ms >= since_ms;
                let before = if continues { silence.rounds } else { 0 };
                silence.rounds = before.saturating_add(1).min(SILENT_ROUNDS);
                silence.last_ms = now_ms;
            }
            None => row.silence.push(Silence { node: node.clone(), rounds: 1, last_ms: now_ms }),
        }
        Some(row)
    }

    fn collide(
        &mut self,
        id: AllocationId,
        row: &Allocation,
        (mac, other): (MacAddress, MacAddress),
        by: &NodeKey,
    ) {
        let of = self.state.holding(id, row, Reason::Conflict);
        self.emit(EventKind::Collided { of, mac, other, by: by.clone() });
    }
}

impl State {
    /// The neighbor after an answer of one station or of two.
    pub(super) fn neighbor_after(
        &self,
        old: Option<&Neighbor>,
        row: &Allocation,
        (mac, second): (MacAddress, Option<MacAddress>),
        by: &NodeKey,
    ) -> Neighbor {
        // Neighbors are learned anew with each attachment: a container has an interface of its own, and the
        // probers that heard it on another node may not hear it on this one.
        let old = old.filter(|old| old.attachment == row.attachment);
        let known = old.map(|old| old.mac);
        let own = row.mac.as_ref().and_then(|mac| mac.parse().ok()).or(known).unwrap_or(mac);
        let mut heard_by = old.map(|old| old.heard_by.clone()).unwrap_or_default();
        // A node is no witness of its own silence.
        if !heard_by.contains(by) && !self.is_attached_on(row, by) {
            if heard_by.len() >= HEARD_BY_MAX {
                let gone = heard_by.iter().position(|node| self.is_silent(node, PROBER_SILENCE_MS_MAX));
                gone.map(|place| heard_by.remove(place));
            }
            if heard_by.len() < HEARD_BY_MAX {
                heard_by.push(by.clone());
            }
        }
        let (other, other_ms) = self.colliding(old, [Some(mac), second].into_iter().flatten(), own);
        Neighbor {
            pool: row.pool,
            attachment: row.attachment,
            mac: own,
            other,
            other_ms,
            heard_by,
            silence: Vec::new(),
        }
    }

    /// Returns the colliding station and its time after an answer. The first station stays until none has
    /// answered for some time: stations that answer in turn, or change their MAC address, are one collision.
    fn colliding(
        &self,
        old: Option<&Neighbor>,
        mut stations: impl Iterator<Item = MacAddress>,
        own: MacAddress,
    ) -> (Option<MacAddress>, u64) {
        let now_ms = self.log_time_ms();
        let known = old.and_then(|old| Some((old.other?, old.other_ms)));
        let other = stations.find(|mac| *mac != own);
        match (known, other) {
            // The time is refreshed before the collision would end, but not with each answer.
            (Some((known, at_ms)), Some(_)) if at_ms.saturating_add(COLLISION_MS / 2) <= now_ms => {
                (Some(known), now_ms)
            }
            (Some((known, at_ms)), Some(_)) => (Some(known), at_ms),
            (Some((known, at_ms)), None) if at_ms.saturating_add(COLLISION_MS) > now_ms => {
                (Some(known), at_ms)
            }
            (None, Some(other)) => (Some(other), now_ms),
            (_, None) => (None, 0),
        }
    }
}
