//! Settings of probes: those of a pool, its subnet and its network.

use crate::command::Probing;
use crate::state::State;
use crate::state::id::{PoolId, SubnetId};

/// Pools of one subnet that are examined to find whether the subnet is probed.
const POOLS_EXAMINED: usize = 256;

impl State {
    /// Probes that addresses of a pool need.
    #[must_use]
    pub fn probing(&self, pool: PoolId) -> Probing {
        let pool = self.pools.named(pool);
        let subnet = self.subnets.named(pool.subnet);
        pool.spec.probing.or(subnet.spec.probing).or(self.networks.named(subnet.network).spec.probing)
    }

    /// Returns true if addresses of a subnet are probed.
    pub(crate) fn is_probed(&self, subnet: SubnetId) -> bool {
        self.pools_of(subnet).take(POOLS_EXAMINED).any(|pool| self.probing(pool).conflicts())
    }
}
