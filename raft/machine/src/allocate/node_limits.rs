//! Limits of requests that a node makes, and their budget of events in a window of log time.

use crate::allocate::choosing::Choosing;
use crate::allocate::pick::Pick;
use crate::allocate::request::Served;
use crate::apply::step::Step;
use crate::command::validate::within;
use crate::command::{Allocate, Cause, Refusal};
use crate::state::id::AllocationId;
use crate::state::row::{Allocation, Source, Waiting};
use crate::value::cause::Counted;
use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::limits::{
    ALLOCATIONS_PER_ENDPOINT_MAX, ALLOCATIONS_PER_HOST_MAX, ALLOCATIONS_PER_NODE_MAX,
    ATTACHMENTS_PER_NODE_MAX,
};

/// Maximum allocations of one node for an endpoint that others hold, too.
const SHARED_ENDPOINT_ALLOCATIONS_MAX: usize = ALLOCATIONS_PER_ENDPOINT_MAX / 4;

impl<'a> Choosing<'a> {
    /// Limits the plan of a node's request. Allocations that the node may not free stay, and addresses of
    /// other nodes aren't replaced.
    pub(super) fn limit_plan(self, picks: &[Pick], left: &mut Vec<AllocationId>) -> Result<(), Refusal> {
        let grant = self.grant;
        let Some(node) = &grant.node else { return Ok(()) };
        self.check_usage(node, picks.len())?;
        let Some(endpoint) = self.row else { return Ok(()) };
        let is_own_claim = |waiting: &Waiting| {
            self.state.grant(&waiting.credential).is_ok_and(|(grant, _)| grant.node.as_ref() == Some(node))
        };
        // The allocation would end a claim of another requester.
        let is_own = endpoint.key == node.host();
        if !is_own && endpoint.waiting.as_deref().is_some_and(|waiting| !is_own_claim(waiting)) {
            let endpoint = endpoint.key.clone();
            return Err(Cause::EndpointElsewhere { endpoint, node: node.clone() }.into());
        }
        // By draining the pool an operator has permitted the loss of its addresses.
        let is_drained = |row: &Allocation| {
            let pool = self.state.pools.get(row.pool).map(|pool| &pool.spec);
            pool.is_some_and(|pool| pool.drains_to.is_some() || pool.terminating)
        };
        left.retain(|id| {
            self.state.may_free(grant, *id) || self.state.allocations.get(*id).is_some_and(is_drained)
        });
        if is_own {
            let count = endpoint.allocations.len() + picks.len();
            let most = if picks.is_empty() { count } else { ALLOCATIONS_PER_HOST_MAX };
            within(Counted::HostAllocations, count, most)?;
        }
        if picks.is_empty() || !endpoint.allocations.iter().any(|id| !self.state.may_free(grant, *id)) {
            return Ok(());
        }
        let rows = endpoint.allocations.iter().filter_map(|id| self.state.allocations.get(*id));
        let own = rows.filter(|row| matches!(&row.source, Source::Node(source) if source == node)).count();
        if own + picks.len() > SHARED_ENDPOINT_ALLOCATIONS_MAX {
            let (endpoint, held) = (endpoint.key.clone(), own as u64);
            return Err(Cause::TooManyAllocations { endpoint, held }.into());
        }
        if endpoint.sticky.is_none() {
            // Its other addresses stay, each with its own attachment.
            return Ok(());
        }
        let replaces = |pick: &Pick| {
            let mut rows = endpoint.allocations.iter().filter_map(|id| self.state.allocations.get(*id));
            rows.any(|row| {
                row.interface == pick.interface
                    && Family::of(row.address) == Family::of(pick.address)
                    && self.state.is_of_others(row, node)
                    && !is_drained(row)
            })
        };
        match picks.iter().any(replaces) {
            true => {
                Err(Cause::EndpointElsewhere { endpoint: endpoint.key.clone(), node: node.clone() }.into())
            }
            false => Ok(()),
        }
    }

    fn check_usage(self, node: &NodeKey, picks: usize) -> Result<(), Refusal> {
        let usage = self.state.usage_of(node);
        let bound = |what, count: u64, max: usize| match count > max as u64 {
            true => Err(Cause::TooManyOfNode { node: node.clone(), what, count, max: max as u64 }.into()),
            false => Ok(()),
        };
        if picks > 0 {
            bound(Counted::NodeAllocations, usage.allocations + picks as u64, ALLOCATIONS_PER_NODE_MAX)?;
        }
        match self.request.attachment {
            Some(_) => bound(Counted::NodeAttachments, usage.attachments + 1, ATTACHMENTS_PER_NODE_MAX),
            None => Ok(()),
        }
    }
}

impl Step<'_> {
    /// Allocates within the budget of events that a node's requests have in a window of log time.
    pub(crate) fn allocate_in_budget(&mut self, request: &Allocate) -> Result<Served, Refusal> {
        let (grant, _) = self.rights.as_ref().map_err(Clone::clone)?;
        let Some(node) = &grant.node else { return self.allocate(request) };
        self.check_event_budget(node)?;
        let verified = self.state.verified(node, request)?;
        let before = self.events.len();
        let served = self
            .allocate(verified.as_ref().unwrap_or(request))
            .map_err(|refusal| without_foreign_realms(refusal, node))?;
        let events = self.events.len().saturating_sub(before) as u64;
        if events > 0 {
            self.spend_events(node, events);
        }
        Ok(served)
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
