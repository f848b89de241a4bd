//! Heartbeats of nodes' agents: the present boot of a node, its readiness, and the renewal of its leases.
//!
//! The cost depends neither on the leases nor on the attachments of the node: see `state/lease_index.rs`.

use crate::apply::step::Step;
use crate::command::{Answer, Expect, Heartbeat, Kind, Refusal, Text};
use crate::event::EventKind;
use crate::resource::described::check_room;
use crate::state::State;
use crate::state::id::Id;
use crate::state::row::{Node, NodeReport};
use ipam_api::access::NodeKey;
use ipam_api::limits::PAST_BOOTS_MAX;
use ipam_api::name::ResourceName;
use std::cmp::Ordering;

impl Step<'_> {
    /// Records a heartbeat. A heartbeat of an earlier boot than the present one changes nothing.
    pub(crate) fn hear_node(&mut self, heartbeat: &Heartbeat) -> Result<Answer, Refusal> {
        let old = self.state.report_of(&heartbeat.node).map(|(id, row)| (id, row.clone()));
        match old {
            Some((_, row)) if row.is_late(heartbeat) => Ok(self.heard(&heartbeat.node, &row)),
            Some((id, row)) => self.update_report(id, row, heartbeat),
            None => self.first_report(heartbeat),
        }
    }

    fn first_report(&mut self, heartbeat: &Heartbeat) -> Result<Answer, Refusal> {
        let count = self.state.reports.len();
        check_room(count, Kind::Node)?;
        self.spend_events_of_caller(2)?;
        let id = self.state.new_id();
        let row = NodeReport {
            node: heartbeat.node.clone(),
            boot: heartbeat.boot.clone(),
            past: Vec::new(),
            readiness: heartbeat.readiness,
            since_wall_ms: self.at.wall_ms,
            agent_version: heartbeat.agent_version.clone(),
            heard_ms: self.state.log_time_ms(),
            heard_wall_ms: self.at.wall_ms,
            links: heartbeat.links.clone(),
            inventory: heartbeat.inventory,
            inventory_matched: self.state.inventory(&heartbeat.node) == heartbeat.inventory,
        };
        self.report_boot(&row);
        self.report_readiness(&row);
        Ok(self.store(id, row))
    }

    fn update_report(
        &mut self,
        id: Id<NodeReport>,
        old: NodeReport,
        heartbeat: &Heartbeat,
    ) -> Result<Answer, Refusal> {
        let boots = old.boot.id != heartbeat.boot.id;
        let changes = old.readiness != heartbeat.readiness;
        self.spend_events_of_caller(u64::from(boots) + u64::from(changes))?;
        let mut row = NodeReport {
            heard_ms: self.state.log_time_ms(),
            agent_version: heartbeat.agent_version.clone(),
            readiness: heartbeat.readiness,
            links: heartbeat.links.clone(),
            inventory: heartbeat.inventory,
            inventory_matched: self.state.inventory(&heartbeat.node) == heartbeat.inventory,
            ..old.clone()
        };
        row.boot.number = row.boot.number.max(heartbeat.boot.number);
        if boots {
            row.past.push(std::mem::replace(&mut row.boot, heartbeat.boot.clone()).id);
            let surplus = row.past.len().saturating_sub(PAST_BOOTS_MAX);
            row.past.drain(..surplus);
        }
        if row == old {
            // A repetition at the same log time changes nothing; the wall clock is a label and doesn't count.
            return Ok(self.heard(&heartbeat.node, &row));
        }
        self.state.tick();
        row.heard_wall_ms = self.at.wall_ms;
        if boots {
            self.report_boot(&row);
        }
        if changes {
            row.since_wall_ms = self.at.wall_ms;
            self.report_readiness(&row);
        }
        Ok(self.store(id, row))
    }

    /// Counts the events of a heartbeat in the budget of the node that sent it. Most have none.
    fn spend_events_of_caller(&mut self, events: u64) -> Result<(), Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        let Some(node) = grant.node.as_ref().filter(|_| events > 0) else { return Ok(()) };
        self.check_event_budget(node)?;
        self.spend_events(node, events);
        Ok(())
    }

    fn report_boot(&mut self, row: &NodeReport) {
        self.emit(EventKind::NodeBooted { node: row.node.clone(), boot: row.boot.clone() });
    }

    fn report_readiness(&mut self, row: &NodeReport) {
        self.emit(EventKind::NodeReady { node: row.node.clone(), readiness: row.readiness });
    }

    fn store(&mut self, id: Id<NodeReport>, row: NodeReport) -> Answer {
        self.state.write(id, row.clone());
        self.state.renew_leases_of(&row.node, row.heard_ms);
        self.heard(&row.node, &row)
    }

    fn heard(&self, node: &NodeKey, row: &NodeReport) -> Answer {
        Answer::Heard { boot: row.boot.clone(), inventory: self.state.inventory(node) }
    }

    /// Deletes a node with the report of its agent; a node without a description has the report alone. The
    /// report stays while leases depend on it: without the report they would end at once, although their node
    /// may be alive.
    pub(crate) fn delete_node(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let node = name.parts().map(|(realm, name)| NodeKey { realm, name });
        let node = node.filter(|node| !self.state.has_leases(node));
        let report = node.and_then(|node| self.state.report_of(&node).map(|(id, _)| id));
        let is_described = self.state.find::<Node>(name).is_some();
        let answer = if report.is_some() && !is_described && expect == Expect::Anything {
            self.state.tick();
            Answer::Gone
        } else {
            self.delete_described::<Node>(name, expect)?
        };
        if let Some(report) = report {
            self.state.erase::<NodeReport>(report);
        }
        Ok(answer)
    }
}

impl NodeReport {
    /// Returns true for a heartbeat of an earlier boot, or of a boot that the agent has renumbered too low.
    fn is_late(&self, heartbeat: &Heartbeat) -> bool {
        let boot = &heartbeat.boot;
        boot.id != self.boot.id && (boot.number <= self.boot.number || self.past.contains(&boot.id))
    }

    /// Place of a boot among the reported ones; nothing for others.
    fn place(&self, boot_id: &Text) -> Option<usize> {
        let past = self.past.iter().position(|past| past == boot_id);
        past.or((self.boot.id == *boot_id).then_some(self.past.len()))
    }
}

impl State {
    /// Order of two different boots of a node according to its agent. Nothing unless it has reported both.
    pub(crate) fn order_of_boots(&self, node: &NodeKey, one: &Text, other: &Text) -> Option<Ordering> {
        let (_, report) = self.report_of(node)?;
        Some(report.place(one)?.cmp(&report.place(other)?))
    }

    /// Returns true if the agent of a node reports a boot as the present one, and another as past.
    pub(crate) fn is_present_after(&self, node: &NodeKey, one: &Text, other: &Text) -> bool {
        let report = self.report_of(node).map(|(_, report)| report);
        report.is_some_and(|report| report.boot.id == *one && report.past.contains(other))
    }
}
