//! Bounds of automatic pools: the rules of their subnet, and the rights of a node that asks for its application.
//!
//! A node says of an application what it likes. So its request makes pools as far as the bound of the node goes, and lets
//! them grow; it takes nothing from what endpoints of other nodes hold or come back to.

use ipam_api::access::NodeKey;
use ipam_api::limits::AUTOMATIC_POOLS_PER_NODE_MAX;

use crate::apply::work::{Search, Work};
use crate::command::cause::NamedController;
use crate::command::{AutomaticPool, Cause, Grant, Refusal, ScaleController};
use crate::state::id::{AllocationId, PoolId, SubnetId};
use crate::state::index::Index;
use crate::state::indexed::less;
use crate::state::row::{Automatic, Pool};
use crate::state::{Occupant, State};

impl Index {
    /// Counts an automatic pool that begins to exist, or exists no longer.
    pub(crate) fn count_automatic(&mut self, automatic: &Automatic, is_there: bool) {
        let Some(node) = &automatic.made_by else { return };
        let mut count = self.automatic_of_node.get(node).copied().unwrap_or(0);
        match is_there {
            true => count += 1,
            false => less(&mut count, 1),
        }
        match count {
            0 => self.automatic_of_node.remove(node),
            _ => self.automatic_of_node.insert(node.clone(), count),
        };
    }
}

impl State {
    /// Addresses that one automatic pool of a subnet may have.
    pub(crate) fn max_size_in(&self, subnet: SubnetId) -> u128 {
        let rules = self.subnets.get(subnet).and_then(|row| row.intention.automatic.as_ref());
        rules.map_or(0, |rules| rules.max_size().into())
    }

    /// Refuses a new pool that its subnet does not allow, or that is beyond the bounds of a node.
    pub(crate) fn check_may_make(
        &self,
        (subnet, wanted): (SubnetId, u128),
        said: AutomaticPool,
        (grant, planned): (&Grant, usize),
    ) -> Result<(), Refusal> {
        if let Some(row) = self.subnets.get(subnet) {
            let subnet = || row.intention.name.clone();
            let Some(rules) = &row.intention.automatic else {
                return Err(Cause::NoAutomaticPools { subnet: subnet() }.into());
            };
            let max = rules.max_size();
            if wanted > max.into() {
                return Err(Cause::AutomaticAboveMax { wanted, subnet: subnet(), max }.into());
            }
        }
        let Some(node) = &grant.node else { return Ok(()) };
        if !said.reclaim {
            return Err(Cause::KeptByNode { node: node.clone() }.into());
        }
        let made = self.index.automatic_of_node.get(node).copied().unwrap_or(0);
        if made + planned >= AUTOMATIC_POOLS_PER_NODE_MAX {
            return Err(Cause::TooManyAutomaticOfNode { node: node.clone() }.into());
        }
        Ok(())
    }

    /// Says that the rights reach as far as ending what a pool is: a node's do while all that is held is its own.
    pub(crate) fn may_decide(&self, id: PoolId, pool: &Pool, search: Search<'_>) -> bool {
        let Some(node) = &search.grant.node else { return true };
        let made_by = pool.automatic.as_ref().and_then(|automatic| automatic.made_by.as_ref());
        let held = self.space(id).map_or(0, |space| space.allocated);
        let is_theirs =
            if held == 0 { made_by == Some(node) } else { !self.others_hold(id, pool, node, search.work) };
        is_theirs && pool.intention.reclaim == Some(true)
    }

    /// Refuses a node that would scale or end an application without holding its last allocations, all of them.
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
        // Beyond the budget nothing was looked at.
        if is_last && !search.work.is_exceeded() {
            return Ok(());
        }
        let controller = NamedController::of(&scale.controller);
        Err(Cause::ApplicationOfOthers { controller, node: node.clone() }.into())
    }

    /// Says that endpoints of other nodes hold addresses of a pool.
    fn others_hold(&self, id: PoolId, pool: &Pool, node: &NodeKey, work: &Work) -> bool {
        let (Some(subnet), Some(space)) = (self.subnets.get(pool.subnet), self.space(id)) else {
            return false;
        };
        let held = space.ranges.ranges().flat_map(|range| self.occupied(subnet.network, range));
        let mut held = held.take_while(|_| work.take(1)).filter_map(|(_, occupant)| match occupant {
            Occupant::Allocation(id) => self.allocations.get(id),
            Occupant::Cooling(_) => None,
        });
        held.any(|row| !self.is_on(row, node))
    }
}
