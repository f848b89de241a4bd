//! Soundness of loaded rows: each referenced row exists, and belongs to the same network.

use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::id::{AllocationId, EndpointId, NetworkId, PoolId};
use crate::state::row::{Allocation, Endpoint, Network, Pool, Subnet};
use crate::state::table::Row;
use ipam_api::name::Name;
use std::collections::BTreeMap;

impl State {
    /// Refuses rows that contradict each other. The index across tables and all commands rely on it.
    pub(super) fn check_rows(&self) -> Result<(), Damaged> {
        if self.index.occupants.len() != self.allocations.len() + self.coolings.len() + self.quarantines.len()
        {
            return Err(Damaged("one address is occupied by two rows".to_owned()));
        }
        for (id, row) in self.subnets.iter() {
            if row.spec.cidr.prefix_len() == 0 {
                return Err(Damaged(format!("subnet {id} is larger than any subnet can be")));
            }
            self.check_network(row.network, &row.spec.network)?;
        }
        for (_, row) in self.reservations.iter() {
            self.check_network(row.network, &row.spec.network)?;
        }
        let mut networks = BTreeMap::new();
        for (id, row) in self.pools.iter() {
            let subnet = self.subnets.get(row.subnet).ok_or_else(|| lost::<Subnet>(row.subnet))?;
            networks.insert(id, subnet.network);
        }
        let allocated = self.allocations.iter().map(|(_, row)| (row.pool, row.network));
        let cooling = self.coolings.iter().map(|(_, row)| (row.pool, row.network));
        let quarantined = self.quarantines.iter().map(|(_, row)| (row.pool, row.network));
        let checked = self.checks.iter().map(|(_, row)| (row.pool, row.network));
        let delegated = self.prefixes.iter().map(|(_, row)| (row.pool, row.network));
        let cooling_blocks = self.prefix_coolings.iter().map(|(_, row)| (row.pool, row.network));
        for (pool, network) in
            allocated.chain(cooling).chain(quarantined).chain(checked).chain(delegated).chain(cooling_blocks)
        {
            check_pool(&networks, pool, network)?;
        }
        for (_, row) in self.prefix_claims.iter() {
            if !networks.contains_key(&row.pool) {
                return Err(lost::<Pool>(row.pool));
            }
        }
        match self.pool_states.iter().find(|(id, _)| !networks.contains_key(id)) {
            Some((pool, _)) => Err(lost::<Pool>(pool)),
            None => self.check_holders(),
        }
    }

    /// Refuses contradictions between holders and allocations. Allocations and attachments have their
    /// endpoint, and listed allocations exist and belong to the same endpoint.
    fn check_holders(&self) -> Result<(), Damaged> {
        for endpoint in self.allocations.iter().map(|(_, row)| row.endpoint) {
            self.endpoints.get(endpoint).ok_or_else(|| lost::<Endpoint>(endpoint))?;
        }
        for (id, row) in self.endpoints.iter() {
            self.check_listed(&row.allocations, id)?;
        }
        for (_, row) in self.attachments.iter() {
            self.endpoints.get(row.endpoint).ok_or_else(|| lost::<Endpoint>(row.endpoint))?;
            self.check_listed(&row.allocations, row.endpoint)?;
        }
        for (id, row) in self.neighbors.iter() {
            let allocation = self.allocations.get(id).ok_or_else(|| lost::<Allocation>(id))?;
            if allocation.pool != row.pool {
                return Err(Damaged(format!("the neighbor of allocation {id} is of another pool")));
            }
        }
        Ok(())
    }

    fn check_listed(&self, allocations: &[AllocationId], endpoint: EndpointId) -> Result<(), Damaged> {
        for id in allocations {
            let holder = self.allocations.get(*id).ok_or_else(|| lost::<Allocation>(*id))?.endpoint;
            if holder != endpoint {
                return Err(Damaged(format!(
                    "allocation {id} is of endpoint {holder}, and a row of it of endpoint {endpoint}"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a missing network, or one with another name than in the row.
    fn check_network(&self, id: NetworkId, name: &Name) -> Result<(), Damaged> {
        let row = self.networks.get(id).ok_or_else(|| lost::<Network>(id))?;
        if row.spec.name == *name {
            return Ok(());
        }
        Err(Damaged(format!("network {id} is {}, and a row of it names {name}", row.spec.name)))
    }
}

/// Refuses a missing pool, or one of another network than in the row.
fn check_pool(
    networks: &BTreeMap<PoolId, NetworkId>,
    pool: PoolId,
    network: NetworkId,
) -> Result<(), Damaged> {
    match networks.get(&pool) {
        Some(own) if *own == network => Ok(()),
        Some(own) => {
            Err(Damaged(format!("pool {pool} is of network {own}, and a row of it of network {network}")))
        }
        None => Err(lost::<Pool>(pool)),
    }
}

fn lost<T: Row>(id: T::Id) -> Damaged {
    Damaged(format!("{} {id} is named by a row and not there", T::WORD))
}
