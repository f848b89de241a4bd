//! Rights to scale or end an application: what of its pools and addresses a grant covers.

use crate::apply::work::{Search, Work};
use crate::command::{Cause, Grant, Refusal, ScaleController};
use crate::state::id::{AllocationId, PoolId};
use crate::state::row::Pool;
use crate::state::{Occupant, State};
use crate::value::cause::NamedController;
use ipam_api::access::NodeKey;

impl State {
    /// Refuses to scale or end an application with pools that lack the labels of the grant.
    pub(crate) fn permit_pools_of(&self, grant: &Grant, scale: &ScaleController) -> Result<(), Refusal> {
        self.pools_touched_by(scale).into_iter().try_for_each(|id| self.permit_pool(grant, id))
    }

    /// Refuses a node that would scale or end an application without holding all of its last allocations.
    pub(crate) fn permit_scale_of_node(
        &self,
        scale: &ScaleController,
        search: Search<'_>,
    ) -> Result<(), Refusal> {
        let Some(node) = &search.grant.node else { return Ok(()) };
        let is_own = |id: AllocationId| {
            self.allocations.get(id).is_some_and(|row| match row.attachment {
                Some(_) => !self.is_of_others(row, node),
                // The scaling frees it.
                None => self.may_free(search.grant, id),
            })
        };
        let decides = |id: &PoolId| self.pools.get(*id).is_some_and(|row| self.may_decide(*id, row, search));
        let is_held = |id: &PoolId| self.space(*id).is_some_and(|space| space.allocated > 0);
        let pools = self.pools_touched_by(scale);
        let mut kept = self.touched_by(scale).peekable();
        let is_last = scale.realm == node.realm
            && (kept.peek().is_some() || pools.iter().any(is_held))
            && kept.all(|id| search.work.take(1) && is_own(id))
            && pools.iter().all(decides);
        // Above the work budget the examination is incomplete.
        if is_last && !search.work.is_exceeded() {
            return Ok(());
        }
        let controller = NamedController::of(&scale.controller);
        Err(Cause::ApplicationOfOthers { controller, node: node.clone() }.into())
    }

    /// Returns true if the grant permits deleting the pool. A node may if all held addresses are its own.
    pub(crate) fn may_decide(&self, id: PoolId, pool: &Pool, search: Search<'_>) -> bool {
        let Some(node) = &search.grant.node else { return true };
        let created_by = pool.automatic.as_ref().and_then(|automatic| automatic.created_by.as_ref());
        let held = self.space(id).map_or(0, |space| space.allocated);
        let is_theirs =
            if held == 0 { created_by == Some(node) } else { !self.others_hold(id, pool, node, search.work) };
        is_theirs && pool.spec.reclaim == Some(true)
    }

    /// Returns true if endpoints of other nodes hold addresses of a pool.
    fn others_hold(&self, id: PoolId, pool: &Pool, node: &NodeKey, work: &Work) -> bool {
        let (Some(subnet), Some(space)) = (self.subnets.get(pool.subnet), self.space(id)) else {
            return false;
        };
        let held = space.ranges.ranges().flat_map(|range| self.occupied(subnet.network, range));
        let mut held = held.take_while(|_| work.take(1)).filter_map(|(_, occupant)| match occupant {
            Occupant::Allocation(id) => self.allocations.get(id),
            Occupant::Cooling(_) | Occupant::Quarantine(_) => None,
        });
        held.any(|row| !self.is_on(row, node))
    }
}
