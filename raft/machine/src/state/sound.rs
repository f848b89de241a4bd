//! Soundness of loaded rows: each row that another one names is there, and both are of one network.

use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::id::{NetworkId, PoolId};
use crate::state::row::{Endpoint, Network, Pool, Subnet};
use crate::state::table::Row;
use ipam_api::name::Name;
use std::collections::BTreeMap;

impl State {
    /// Refuses rows that contradict each other. The index across tables and all commands rely on it.
    pub(super) fn check_rows(&self) -> Result<(), Damaged> {
        if self.index.occupants.len() != self.allocations.len() + self.coolings.len() {
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
        let delegated = self.prefixes.iter().map(|(_, row)| (row.pool, row.network));
        for (pool, network) in allocated.chain(cooling).chain(delegated) {
            check_pool(&networks, pool, network)?;
        }
        let mut holders = self.allocations.iter().map(|(_, row)| row.endpoint);
        match holders.find(|id| self.endpoints.get(*id).is_none()) {
            Some(endpoint) => Err(lost::<Endpoint>(endpoint)),
            None => Ok(()),
        }
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
