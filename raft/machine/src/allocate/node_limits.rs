//! Limits of requests that a node makes.

use ipam_api::Family;
use ipam_api::access::NodeKey;
use ipam_api::limits::{ALLOCATIONS_PER_ENDPOINT_MAX, ALLOCATIONS_PER_NODE_MAX, ATTACHMENTS_PER_NODE_MAX};

use crate::allocate::pick::Pick;
use crate::command::{Allocate, Cause, Grant, Refusal};
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::row::{Allocation, Endpoint, Source, Waiting};
use crate::value::cause::Counted;

/// Allocations that one node may make for an endpoint that others hold, too.
const SHARED_ENDPOINT_ALLOCATIONS_MAX: usize = ALLOCATIONS_PER_ENDPOINT_MAX / 4;

impl State {
    /// Limits of a node's request: what it leaves that it may not free stays, and no address of others is replaced.
    pub(crate) fn limit_plan(
        &self,
        grant: &Grant,
        wish: &Allocate,
        endpoint: Option<&Endpoint>,
        picks: &[Pick],
        left: &mut Vec<AllocationId>,
    ) -> Result<(), Refusal> {
        let Some(node) = &grant.node else { return Ok(()) };
        self.check_usage(node, wish, picks.len())?;
        let Some(endpoint) = endpoint else { return Ok(()) };
        let is_own_claim = |waiting: &Waiting| {
            self.grant(&waiting.credential).is_ok_and(|(grant, _)| grant.node.as_ref() == Some(node))
        };
        // What it is given would end the claim.
        if endpoint.waiting.as_deref().is_some_and(|waiting| !is_own_claim(waiting)) {
            let endpoint = endpoint.key.clone();
            return Err(Cause::EndpointElsewhere { endpoint, node: node.clone() }.into());
        }
        // An operator who drains a pool has decided that its addresses go.
        let is_drained = |row: &Allocation| {
            let pool = self.pools.get(row.pool).map(|pool| &pool.intention);
            pool.is_some_and(|pool| pool.drains_to.is_some() || pool.terminating)
        };
        left.retain(|id| self.may_free(grant, *id) || self.allocations.get(*id).is_some_and(is_drained));
        if picks.is_empty() || !endpoint.allocations.iter().any(|id| !self.may_free(grant, *id)) {
            return Ok(());
        }
        let rows = endpoint.allocations.iter().filter_map(|id| self.allocations.get(*id));
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
            let mut rows = endpoint.allocations.iter().filter_map(|id| self.allocations.get(*id));
            rows.any(|row| {
                row.interface == pick.interface
                    && Family::of(row.address) == Family::of(pick.address)
                    && self.is_of_others(row, node)
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

    fn check_usage(&self, node: &NodeKey, wish: &Allocate, picks: usize) -> Result<(), Refusal> {
        let usage = self.usage_of(node);
        let bound = |what, count: u64, max: usize| match count > max as u64 {
            true => Err(Cause::TooManyOfNode { node: node.clone(), what, count, max: max as u64 }.into()),
            false => Ok(()),
        };
        if picks > 0 {
            bound(Counted::NodeAllocations, usage.allocations + picks as u64, ALLOCATIONS_PER_NODE_MAX)?;
        }
        match wish.attachment {
            Some(_) => bound(Counted::NodeAttachments, usage.attachments + 1, ATTACHMENTS_PER_NODE_MAX),
            None => Ok(()),
        }
    }
}
