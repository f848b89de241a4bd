//! The model's reports of nodes' agents: boots, readiness, leases that depend on them, and orphans.

use std::cmp::Ordering;

use ipam_api::access::NodeKey;
use ipam_api::limits::PAST_BOOTS_MAX;
use ipam_api::name::ResourceName;
use ipam_api::node_report::{Inventory, OrphanEvidence};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;
use ipam_machine::command::{
    AgentReadiness, EndIncarnation, Heartbeat, Link, ReleaseOrphans, ReportedBoot, Started, Text,
};

use crate::model::naive::{Held, Incarnation, Model, Reply};

/// Newest report of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// Boots, the present one last.
    pub(crate) boots: Vec<Text>,
    pub(crate) number: u64,
    pub(crate) readiness: AgentReadiness,
    pub(crate) agent_version: Text,
    pub(crate) heard_ms: u64,
    pub(crate) links: Vec<Link>,
    pub(crate) inventory: Inventory,
    pub(crate) inventory_matched: bool,
}

impl Report {
    pub(crate) fn present(&self) -> &Text {
        self.boots.last().expect("it has one")
    }
}

pub(crate) fn node_of(key: &AttachmentKey) -> NodeKey {
    NodeKey { realm: key.realm.clone(), name: key.node.clone() }
}

impl Model {
    pub(crate) fn hear_node(&mut self, heartbeat: &Heartbeat) -> Reply {
        let Heartbeat { node, boot, readiness, agent_version, links, inventory } = heartbeat;
        let now = self.now;
        let inventory_matched = self.inventory(node) == *inventory;
        let report = self.reports.entry(node.clone()).or_insert_with(|| Report {
            boots: vec![boot.id.clone()],
            number: 0,
            readiness: *readiness,
            agent_version: agent_version.clone(),
            heard_ms: now,
            links: Vec::new(),
            inventory: *inventory,
            inventory_matched,
        });
        let is_same = *report.present() == boot.id;
        if is_same || (boot.number > report.number && !report.boots.contains(&boot.id)) {
            if !is_same {
                report.boots.push(boot.id.clone());
            }
            if report.boots.len() > PAST_BOOTS_MAX + 1 {
                report.boots.remove(0);
            }
            report.number = report.number.max(boot.number);
            (report.readiness, report.agent_version) = (*readiness, agent_version.clone());
            report.heard_ms = now;
            report.links.clone_from(links);
            (report.inventory, report.inventory_matched) = (*inventory, inventory_matched);
        }
        let boot = ReportedBoot { id: report.present().clone(), number: report.number };
        Reply::Heard { boot, attachments: self.inventory(node).attachments() }
    }

    pub(crate) fn inventory(&self, node: &NodeKey) -> Inventory {
        let mut inventory = Inventory::default();
        for key in self.attachments.keys().filter(|key| node_of(key) == *node) {
            let held = self.held.iter().filter(|one| one.attachments.contains(key));
            inventory.add(key, held.map(|one| one.id));
        }
        inventory
    }

    /// The node whose heartbeats renew a lease.
    fn node_of_lease(&self, held: &Held) -> Option<NodeKey> {
        let endpoint = self.endpoints.iter().find(|one| one.number == held.endpoint).expect("it has one");
        let name = held.lease.and(held.node.clone())?;
        Some(NodeKey { realm: endpoint.key.realm.clone(), name })
    }

    /// End of a lease: its own, or its TTL after its node was heard.
    pub(crate) fn end_of(&self, held: &Held) -> Option<u64> {
        let (ttl_ms, until_ms) = held.lease?;
        let report = self.node_of_lease(held).and_then(|node| self.reports.get(&node));
        Some(report.map_or(until_ms, |report| until_ms.max(report.heard_ms + ttl_ms)))
    }

    /// Removes the report of a node, unless a lease depends on it; true if there was one.
    pub(crate) fn forget_report(&mut self, name: &ResourceName) -> bool {
        let (realm, name) = name.parts().expect("REALM/NAME");
        let node = NodeKey { realm, name };
        let has_leases = self.held.iter().any(|held| self.node_of_lease(held).as_ref() == Some(&node));
        !has_leases && self.reports.remove(&node).is_some()
    }

    /// Order of two boots that the agent of a node has reported.
    pub(crate) fn reported_order(
        &self,
        key: &AttachmentKey,
        one: &Started,
        other: &Started,
    ) -> Option<Ordering> {
        let report = self.reports.get(&node_of(key))?;
        let place = |started: &Started| report.boots.iter().position(|boot| *boot == started.boot_id);
        Some(place(one)?.cmp(&place(other)?))
    }

    pub(crate) fn is_of_present_boot(&self, key: &AttachmentKey, started: &Started) -> bool {
        self.reports.get(&node_of(key)).is_some_and(|report| *report.present() == started.boot_id)
    }

    /// The attachments of an incarnation end one after the other, then its claim.
    pub(crate) fn end_incarnation(&mut self, end: &EndIncarnation) -> Reply {
        let is_meant = |one: &&Incarnation| one.key == end.endpoint && one.uid.as_ref() == Some(&end.uid);
        let stale = Reply::Reclaimed { addresses: Vec::new(), stale: 1 };
        let Some(number) = self.endpoints.iter().find(is_meant).map(|one| one.number) else { return stale };
        let is_attached = |one: &&Held| {
            (one.endpoint, one.lifecycle) == (number, Lifecycle::Attached) && !one.attachments.is_empty()
        };
        let mut keys: Vec<AttachmentKey> = Vec::new();
        for held in self.held.iter().filter(is_attached) {
            if held.attachments.len() > 1 || !end.allocations.contains(&held.id.into()) {
                return stale;
            }
            keys.extend(held.attachments.clone());
        }
        let mut addresses = Vec::new();
        for key in keys {
            if let Reply::Released(more) = self.detach_all(&key) {
                addresses.extend(more);
            }
        }
        let Reply::Released(addresses) = self.give_up_preallocated(Reply::Released(addresses)) else {
            unreachable!("it is of the same kind")
        };
        if let Some(one) = self.endpoints.iter_mut().find(|one| one.number == number) {
            one.claim = None;
        }
        self.forget_empty();
        Reply::Reclaimed { addresses, stale: 0 }
    }

    pub(crate) fn release_orphans(&mut self, request: &ReleaseOrphans) -> Reply {
        let (mut addresses, mut stale) = (Vec::new(), 0);
        for orphan in &request.orphans {
            let key = orphan.key(&request.node);
            let is_contradicted = |started: &Started| {
                orphan.evidence == OrphanEvidence::EarlierBoot && self.is_of_present_boot(&key, started)
            };
            let is_observed = |one: &Held| orphan.allocations.contains(&one.id.into());
            let mut held = self.held.iter().filter(|one| one.attachments.contains(&key));
            let is_orphan = self.attachments.get(&key).is_some_and(|(started, _)| !is_contradicted(started));
            if !is_orphan || !held.all(is_observed) {
                stale += 1;
            } else if let Reply::Released(more) = self.detach_all(&key) {
                addresses.extend(more);
            }
        }
        Reply::OrphansReleased { addresses, stale }
    }
}
