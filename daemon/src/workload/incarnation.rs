//! Incarnation of an endpoint that a report of an orchestrator is about.

use ipam_api::access::NodeKey;
use ipam_api::limits::PROBER_SILENCE_MS_MAX;
use ipam_api::resource::{EndpointKey, Lifecycle, ScaleDown};
use ipam_api::workload::Workload;
use ipam_machine::State;
use ipam_machine::command::ReclaimReason;
use ipam_machine::id::AllocationId;
use ipam_machine::model::{Allocation, Endpoint};

use super::verdict::{Known, NodeEvidence};

/// Incarnation of an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Incarnation<'a> {
    state: &'a State,
    row: &'a Endpoint,
}

impl<'a> Incarnation<'a> {
    /// Incarnation with exactly this uid.
    #[must_use]
    pub fn find(state: &'a State, key: &EndpointKey, uid: &str) -> Option<Self> {
        let rows = state.incarnations(key).filter_map(|id| state.endpoints.get(id));
        let is_meant = |row: &&Endpoint| row.uid.as_ref().is_some_and(|own| own.as_str() == uid);
        rows.into_iter().find(is_meant).map(|row| Self { state, row })
    }

    /// Facts for the verdict. A node is silent after the grace time without a heartbeat.
    #[must_use]
    pub fn known(&self, observed: &Workload, grace_ms: u64) -> Known {
        Known { is_wanted: self.is_wanted(), node: self.node_evidence(observed, grace_ms) }
    }

    /// Allocations that end with the workload, and the number of the others.
    ///
    /// Held ones are never released, leased ones end by themselves. Those of a sticky endpoint pass to the
    /// next uid under their present ids, so an id is no proof that they still belong to this one.
    #[must_use]
    pub fn releasable(&self) -> (Vec<AllocationId>, usize) {
        let is_sticky = self.row.sticky.is_some();
        let attached = self.rows().filter(|(_, row)| row.lifecycle == Lifecycle::Attached && !is_sticky);
        let mut of_attachments = Vec::new();
        let mut waiting = Vec::new();
        for (id, row) in attached {
            if row.attachment.is_some() { of_attachments.push(id) } else { waiting.push(id) }
        }
        let kept = self.row.allocations.len() - of_attachments.len() - waiting.len();
        if of_attachments.is_empty() {
            // The release of one releases the others, too: nothing of the endpoint is attached.
            waiting.truncate(1);
        }
        waiting.extend(of_attachments);
        (waiting, kept)
    }

    fn rows(&self) -> impl Iterator<Item = (AllocationId, &'a Allocation)> {
        let state = self.state;
        self.row.allocations.iter().filter_map(move |id| Some((*id, state.allocations.get(*id)?)))
    }

    fn is_wanted(&self) -> bool {
        let Some(sticky) = &self.row.sticky else { return false };
        let keeps = |row: &Allocation| {
            let of_pool = || self.state.pools.get(row.pool).map(|pool| pool.spec.scale_down);
            sticky.scale_down.or_else(of_pool) == Some(ScaleDown::Keep)
        };
        sticky.wanted || self.rows().any(|(_, row)| keeps(row))
    }

    fn node_evidence(&self, observed: &Workload, grace_ms: u64) -> NodeEvidence {
        let Some(named) = &observed.node else { return NodeEvidence::None };
        let node = NodeKey { realm: self.row.key.realm.clone(), name: named.name.clone() };
        let attached = || self.rows().filter(|(_, row)| row.lifecycle == Lifecycle::Attached);
        if attached().any(|(_, row)| self.is_elsewhere(row, &node)) {
            return NodeEvidence::Elsewhere;
        }
        let why = ReclaimReason::NodeSilent { grace_ms };
        if attached().next().is_some() && attached().all(|(id, _)| self.state.is_reclaimable(id, &node, why))
        {
            return NodeEvidence::Silent;
        }
        let heard = self.state.report_of(&node).map(|(_, report)| report.heard_ms);
        let until_ms = |heard_ms: u64| heard_ms.saturating_add(PROBER_SILENCE_MS_MAX);
        match heard.is_some_and(|heard_ms| self.state.log_time_ms() <= until_ms(heard_ms)) {
            true => NodeEvidence::Heard,
            false => NodeEvidence::None,
        }
    }

    fn is_elsewhere(&self, row: &Allocation, node: &NodeKey) -> bool {
        let ids = row.attachment.iter().chain(&row.also_attached);
        let mut keys = ids.filter_map(|id| self.state.attachments.get(*id)).map(|attachment| &attachment.key);
        let is_other = row.node.as_ref().is_some_and(|name| *name != node.name);
        is_other || keys.any(|key| (&key.realm, &key.node) != (&node.realm, &node.name))
    }
}
