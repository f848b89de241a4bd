//! Rights of nodes: the resources that a node's grant may touch, and the bounds of its use.
//!
//! The rights follow from rows alone, never from claims of the request. A node detaches its own attachments and frees
//! what only they hold. It never frees an allocation that an operator pinned, that a sticky endpoint keeps, or that
//! another node has. Its use is counted by rows, so that a stolen node can't fill what all nodes share.

use crate::apply::step::Step;
use crate::command::{Allocate, Answer, Cause, Grant, Refusal};
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::key::Usage;
use crate::state::row::{Allocation, Boots, Endpoint, Source, Waiting};
use crate::value::cause::Counted;
use ipam_api::access::NodeKey;
use ipam_api::limits::{EVENTS_PER_NODE_MAX, EVENTS_PER_NODE_WINDOW_MS, WAITING_PER_NODE_MAX};
use ipam_api::name::{Name, ObjectName};
use ipam_api::request::AttachmentKey;
use ipam_api::resource::Lifecycle;

impl Source {
    /// Source of an allocation that a grant asks for.
    pub(crate) fn of(grant: &Grant, adopt: bool) -> Self {
        match &grant.node {
            Some(node) => Self::Node(node.clone()),
            None if adopt => Self::Adopted,
            None => Self::Operator,
        }
    }
}

impl Waiting {
    /// The node that the claim is for.
    pub(crate) fn place(&self) -> Option<NodeKey> {
        let name = self.wish.place()?.clone();
        Some(NodeKey { realm: self.wish.endpoint.realm.clone(), name })
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
        if row.attachment.is_some() {
            return !self.is_of_others(row, node) && !self.is_kept(id);
        }
        row.node.as_ref() == Some(&node.name)
            && match &row.source {
                Source::Node(source) => source == node,
                // The uid names the incarnation: the node knows when that is gone.
                Source::Adopted => endpoint.uid.is_some(),
                Source::Operator => false,
            }
    }

    /// Refuses to free what the grant may not free.
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

    fn is_attached_elsewhere(&self, row: &Allocation, node: &NodeKey) -> bool {
        self.attachments_of(row).any(|(_, attachment)| !is_of(&attachment.key, node))
    }

    /// Returns true if an allocation is attached to another node, or held by others than this node.
    pub(crate) fn is_of_others(&self, row: &Allocation, node: &NodeKey) -> bool {
        let is_own = matches!(&row.source, Source::Node(source) if source == node);
        self.is_attached_elsewhere(row, node) || (row.lifecycle == Lifecycle::Held && !is_own)
    }

    /// Returns true if a grant leaves an endpoint's own data as it is, since another node or an operator uses it.
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

    /// Allocates within the budget of events that a node's requests have in a window of log time.
    pub(crate) fn allocate_in_budget(&mut self, wish: &Allocate) -> Result<Answer, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        let Some(node) = &grant.node else { return self.allocate(wish) };
        let now_ms = self.state.log_time_ms();
        let spent = self.state.boots_of(&node.realm, &node.name).map_or(0, |(_, row)| row.spent(now_ms));
        if spent >= EVENTS_PER_NODE_MAX {
            return Err(Cause::NodeEventsSpent { node: node.clone(), events: spent }.into());
        }
        let before = self.events.len();
        let answer = self.allocate(wish).map_err(|refusal| without_foreign_realms(refusal, node))?;
        let events = self.events.len().saturating_sub(before) as u64;
        if events > 0 {
            self.spend_events(node, events);
        }
        Ok(answer)
    }

    fn spend_events(&mut self, node: &NodeKey, events: u64) {
        let now_ms = self.state.log_time_ms();
        let known = self.state.boots_of(&node.realm, &node.name).map(|(id, row)| (id, row.clone()));
        let (id, mut row) = known.unwrap_or_else(|| {
            let id = self.state.new_id();
            (id, Boots::of(node.realm.clone(), node.name.clone()))
        });
        if row.window_ends_ms <= now_ms {
            row.window_ends_ms = now_ms.saturating_add(EVENTS_PER_NODE_WINDOW_MS);
            row.window_events = 0;
        }
        row.window_events = row.window_events.saturating_add(events);
        self.state.write(id, row);
    }
}

/// Leaves the holder of an address out of a refusal if it is of another realm than the node.
fn without_foreign_realms(mut refusal: Refusal, node: &NodeKey) -> Refusal {
    if let Cause::Held { holder, .. } = refusal.cause.as_mut()
        && holder.0.as_ref().is_some_and(|key| key.realm != node.realm)
    {
        holder.0 = None;
    }
    refusal
}

impl Boots {
    /// A node without a boot and without events.
    pub(crate) fn of(realm: Name, name: ObjectName) -> Self {
        Self { realm, name, boots: Vec::new(), window_ends_ms: 0, window_events: 0 }
    }

    /// Events that the node's requests have caused in the present window.
    fn spent(&self, now_ms: u64) -> u64 {
        if self.window_ends_ms > now_ms { self.window_events } else { 0 }
    }
}
