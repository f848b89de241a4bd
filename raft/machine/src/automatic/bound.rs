//! Limits of automatic pools: the rules of their subnet, and the rights of the requesting node.
//!
//! A node's statements about an application can't be verified. So its request creates and grows pools up to
//! the node's limit; it takes no address that endpoints of other nodes hold or may return to.

use crate::command::{AutomaticPool, Cause, Grant, Refusal};
use crate::state::State;
use crate::state::id::{PoolId, SubnetId};
use crate::state::key::Application;
use crate::state::row::Pool;
use crate::state::scopes::{Bound, size};
use ipam_api::Family;
use ipam_api::limits::AUTOMATIC_POOLS_PER_NODE_MAX;

impl State {
    /// Maximum size of an automatic pool of a subnet.
    pub(super) fn max_size_in(&self, subnet: SubnetId) -> u128 {
        let rules = self.subnets.get(subnet).and_then(|row| row.spec.automatic.as_ref());
        rules.map_or(0, |rules| rules.max_size().into())
    }

    /// Refuses a new pool that its subnet does not allow, or that is beyond the bounds of a node.
    pub(super) fn check_may_make(
        &self,
        (subnet, wanted): (SubnetId, u128),
        said: AutomaticPool,
        (grant, planned): (&Grant, usize),
    ) -> Result<(), Refusal> {
        if let Some(row) = self.subnets.get(subnet) {
            let subnet = || row.spec.name.clone();
            let Some(rules) = &row.spec.automatic else {
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

    /// Number of addresses that an application's pools may have in addition.
    pub(super) fn room_for_pools(&self, application: &Application<'_>, family: Family) -> Option<u64> {
        self.bounds(application, family).map(|bound| bound.room()).min()
    }

    /// Number of addresses by which leaving a pool reduces an application's usage. All of the pool or, if any
    /// is held, 0.
    pub(super) fn freed_by_leaving(&self, id: PoolId, pool: &Pool) -> u64 {
        let subnet = self.subnets.named(pool.subnet);
        let is_empty = self.space(id).is_some_and(|space| space.held() == 0);
        if is_empty { size(pool, subnet) } else { 0 }
    }

    /// Refuses a new pool that is larger than what a quota leaves to its application.
    pub(super) fn check_pool_quota(
        &self,
        application: &Application<'_>,
        family: Family,
        wanted: u128,
        room: u64,
    ) -> Result<(), Refusal> {
        let tightest = self.bounds(application, family).min_by_key(Bound::room);
        match tightest {
            Some(bound) if wanted > room.into() => {
                Err(bound.refusal(u64::try_from(wanted).unwrap_or(u64::MAX)))
            }
            _ => Ok(()),
        }
    }
}
