//! Rights of nodes: the resources that a node's grant may touch, and the bounds of its use.
//!
//! The rights follow from rows alone, never from claims of the request. A node detaches its own attachments
//! and frees addresses that only these hold. It never frees an allocation that an operator pinned, that a
//! sticky endpoint keeps, or that another node holds. Only the endpoint that represents the node as a host is
//! entirely its own. Rows of a node are counted, so that a compromised node can't exhaust shared resources.

use crate::apply::step::Step;
use crate::command::{Cause, Grant, Refusal};
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::key::Usage;
use crate::state::row::{Allocation, BootHistory, Endpoint, Source};
use crate::value::cause::Counted;
use ipam_api::access::NodeKey;
use ipam_api::limits::WAITING_PER_NODE_MAX;
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;

impl Source {
    /// Source of an allocation that a caller with this grant requests.
    pub(crate) fn of(grant: &Grant, adopt: bool) -> Self {
        match &grant.node {
            Some(node) => Self::Node(node.clone()),
            None if adopt => Self::Adopted,
            None => Self::Operator,
        }
    }
}

fn is_of(key: &AttachmentKey, node: &NodeKey) -> bool {
    (&key.realm, &key.node) == (&node.realm, &node.name)
}

impl State {
    /// Returns true if a grant may free an allocation. Only a node's grant is limited here.
    pub(crate) fn may_free(&self, grant: &Grant, id: AllocationId) -> bool {
        let Some(node) = &grant.node else { return true };
        let row = self.allocations.named(id);
        let endpoint = self.endpoints.named(row.endpoint);
        if endpoint.key.realm != node.realm {
            return false;
        }
        if endpoint.key == node.host() {
            return !self.is_attached_elsewhere(row, node);
        }
        if row.attachment.is_some() {
            return !self.is_of_others(row, node) && !self.is_kept(id);
        }
        row.node.as_ref() == Some(&node.name)
            && match &row.source {
                Source::Node(source) => source == node,
                // With a uid the endpoint is one incarnation, whose end the node can detect.
                Source::Adopted => endpoint.uid.is_some(),
                Source::Operator => false,
            }
    }

    /// Refuses to free an allocation that the grant may not free.
    pub(crate) fn permit_free(&self, grant: &Grant, id: AllocationId) -> Result<(), Refusal> {
        let (Some(node), false) = (&grant.node, self.may_free(grant, id)) else { return Ok(()) };
        let row = self.allocations.named(id);
        let endpoint = self.endpoints.named(row.endpoint);
        Err(Cause::NodeMayNotFree {
            address: row.address,
            endpoint: endpoint.key.clone(),
            node: node.clone(),
        }
        .into())
    }

    pub(super) fn is_attached_elsewhere(&self, row: &Allocation, node: &NodeKey) -> bool {
        self.attachments_of(row).any(|(_, attachment)| !is_of(&attachment.key, node))
    }

    /// Returns true if an allocation is attached to another node, or held by others than this node.
    pub(crate) fn is_of_others(&self, row: &Allocation, node: &NodeKey) -> bool {
        let is_own = matches!(&row.source, Source::Node(source) if source == node)
            || self.endpoints.named(row.endpoint).key == node.host();
        self.is_attached_elsewhere(row, node) || (row.lifecycle == Lifecycle::Held && !is_own)
    }

    /// Returns true if a grant may not change an endpoint's data: another node or an operator uses it.
    pub(crate) fn is_fixed_for(&self, grant: &Grant, endpoint: &Endpoint) -> bool {
        let Some(node) = &grant.node else { return false };
        let mut rows = endpoint.allocations.iter().map(|id| self.allocations.named(*id));
        rows.any(|row| self.is_of_others(row, node))
    }

    /// Refuses one more waiting claim of a node that has too many.
    pub(crate) fn check_waiting_of(&self, grant: &Grant) -> Result<(), Refusal> {
        let Some(node) = &grant.node else { return Ok(()) };
        let count = self.usage_of(node).waiting + 1;
        if count <= WAITING_PER_NODE_MAX as u64 {
            return Ok(());
        }
        let (what, max) = (Counted::WaitingClaims, WAITING_PER_NODE_MAX as u64);
        Err(Cause::TooManyOfNode { node: node.clone(), what, count, max }.into())
    }

    pub(crate) fn usage_of(&self, node: &NodeKey) -> Usage {
        self.index.usage.of(node)
    }
}

impl Step<'_> {
    /// Returns true if the caller may free an allocation.
    pub(crate) fn may_free(&self, id: AllocationId) -> bool {
        self.rights.as_ref().is_ok_and(|(grant, _)| self.state.may_free(grant, id))
    }
}

impl BootHistory {
    /// A node without a boot and without events.
    pub(crate) fn of(realm: Name, name: ObjectName) -> Self {
        Self { realm, name, boots: Vec::new(), window_ends_ms: 0, window_events: 0 }
    }
}
