//! Incarnation of an endpoint that a report of an orchestrator is about.

use ipam_api::access::NodeKey;
use ipam_api::limits::PROBER_SILENCE_MS_MAX;
use ipam_api::resource::{EndpointKey, Lifecycle, ScaleDown};
use ipam_api::workload::Workload;
use ipam_machine::State;
use ipam_machine::command::{EndIncarnation, ReclaimReason, Text};
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
        let row = state.endpoints.get(state.incarnation_with(key, uid)?)?;
        Some(Self { state, row })
    }

    /// Facts for the verdict. A node is silent if it has sent no heartbeat for `grace_ms` of log time.
    #[must_use]
    pub fn known(&self, observed: &Workload, grace_ms: u64) -> Known {
        let is_shared = self.attached().any(|(_, row)| !row.also_attached.is_empty());
        Known { is_wanted: self.is_wanted(), is_shared, node: self.node_evidence(observed, grace_ms) }
    }

    /// Number of its allocations.
    #[must_use]
    pub fn size(&self) -> usize {
        self.row.allocations.len()
    }

    /// Command that ends the incarnation with its present allocations; none if it would change nothing.
    #[must_use]
    pub fn end(&self, uid: &str) -> Option<EndIncarnation> {
        let allocations: Vec<_> = self.attached().map(|(id, _)| id).collect();
        let ends = self.row.waiting.is_some() || !allocations.is_empty();
        ends.then(|| EndIncarnation { endpoint: self.row.key.clone(), uid: Text::given(uid), allocations })
    }

    fn attached(&self) -> impl Iterator<Item = (AllocationId, &'a Allocation)> {
        self.rows().filter(|(_, row)| row.lifecycle == Lifecycle::Attached)
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
        if self.attached().next().is_none() {
            // A claim that waits has no containers.
            return NodeEvidence::None;
        }
        if self.attached().any(|(_, row)| self.is_elsewhere(row, &node)) {
            return NodeEvidence::Elsewhere;
        }
        let why = ReclaimReason::NodeSilent { grace_ms };
        if self.attached().all(|(id, _)| self.state.is_reclaimable(id, &node, why)) {
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
