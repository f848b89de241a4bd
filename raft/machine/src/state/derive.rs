//! Parts of the index that follow from several tables: spaces, owners, counts and waiting claims.

use crate::broken::broken;
use crate::command::PoolSpec;
use crate::invariant::SPACE_OF_POOL;
use crate::space::{Shape, Space};
use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::id::{CheckId, CoolingId, EndpointId, NetworkId, PoolId, QuarantineId};
use crate::state::index::{DefaultKey, Index};
use crate::state::indexed::Change;
use crate::state::row::{Pool, Subnet};
use ipam_api::address::{AddressRange, number};
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Keys under which a request that names no pool finds this pool; none unless it is a default pool.
pub(crate) fn default_keys(
    id: PoolId,
    pool: &PoolSpec,
    subnet: &Subnet,
) -> impl Iterator<Item = DefaultKey> + use<> {
    let (network, family) = (subnet.network, Family::of(subnet.spec.cidr.addr()));
    let selector_keys = if pool.default { pool.selectors.selector_keys() } else { Vec::new() };
    let (rank, name) = (pool.selectors.rank(), pool.name.clone());
    selector_keys.into_iter().map(move |selector_key| (network, family, selector_key, rank, name.clone(), id))
}

impl State {
    /// Derives the entries that follow from several tables, once all rows are loaded and checked.
    pub(crate) fn index_across(&mut self) -> Result<(), Damaged> {
        let networks: Vec<NetworkId> = self.networks.iter().map(|(id, _)| id).collect();
        for network in networks {
            self.index_reservations(network);
        }
        let pools: Vec<(PoolId, Pool)> = self.pools.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, pool) in &pools {
            let subnet = self.subnets.named(pool.subnet).clone();
            self.index_pool(*id, pool, &subnet);
        }
        let allocated: Vec<(PoolId, IpAddr, EndpointId)> =
            self.allocations.iter().map(|(_, row)| (row.pool, row.address, row.endpoint)).collect();
        for (pool, address, endpoint) in allocated {
            self.loaded_space(pool, address)?.allocated += 1;
            let scopes = self.scopes(self.endpoints.named(endpoint), pool);
            self.count_address(scopes, address, true);
        }
        let coolings: Vec<(CoolingId, PoolId, IpAddr)> =
            self.coolings.iter().map(|(id, row)| (id, row.pool, row.address)).collect();
        for (id, pool, address) in coolings {
            self.loaded_space(pool, address)?.cooling.insert(id);
        }
        let quarantines: Vec<(QuarantineId, PoolId, IpAddr)> =
            self.quarantines.iter().map(|(id, row)| (id, row.pool, row.address)).collect();
        for (id, pool, address) in quarantines {
            self.loaded_space(pool, address)?.quarantined.insert(id);
        }
        let checks: Vec<(CheckId, PoolId, IpAddr)> =
            self.checks.iter().map(|(id, row)| (id, row.pool, row.address)).collect();
        for (id, pool, address) in checks {
            let space = self.space_mut(pool);
            if Family::of(address) != space.family {
                return Err(Damaged(format!("{address} is checked and of another family than its pool")));
            }
            if space.checks.insert(number(address), id).is_some() {
                return Err(Damaged(format!("{address} has two checks")));
            }
        }
        self.index_leases();
        self.index_blocks()?;
        self.refresh_all_waiters();
        Ok(())
    }

    /// The space of a pool that an address is loaded into, with the address occupied.
    fn loaded_space(&mut self, pool: PoolId, address: IpAddr) -> Result<&mut Space, Damaged> {
        let space = self.space_mut(pool);
        if !space.allocatable.contains(number(address)) {
            return Err(Damaged(format!("{address} is occupied and not its pool's to give")));
        }
        space.occupy(number(address));
        Ok(space)
    }

    // === The index of pools and reservations ===

    /// Returns the space of a pool that has a row.
    pub(crate) fn space_of(&self, pool: PoolId) -> &Space {
        match self.space(pool) {
            Some(space) => space,
            None => broken(SPACE_OF_POOL, format!("pool {pool}")),
        }
    }

    /// Returns the space of a pool for changes.
    pub(crate) fn space_mut(&mut self, pool: PoolId) -> &mut Space {
        match self.index.spaces.get_mut(&pool) {
            Some(space) => Arc::make_mut(space),
            None => broken(SPACE_OF_POOL, format!("pool {pool}")),
        }
    }

    /// Registers a new pool, with all of its addresses vacant.
    pub(crate) fn index_pool(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        self.change_pool(id, pool, subnet, Change::Enter);
        let mut space = Space::empty(subnet.spec.cidr);
        space.reshape(self.shape_of(&pool.spec, subnet), |_, _| std::iter::empty());
        self.index.spaces.insert(id, Arc::new(space));
    }

    /// Writes the changed row of a pool, and the entries that are derived from it and its subnet. Its space
    /// follows with [`Self::reshape_pool`].
    pub(crate) fn rewrite_pool(&mut self, id: PoolId, old: &Pool, row: Pool, subnet: &Subnet) {
        self.change_pool(id, old, subnet, Change::Leave);
        self.change_pool(id, &row, subnet, Change::Enter);
        self.write(id, row);
    }

    /// Removes a pool from the index. `subnet` is the pool's subnet.
    pub(crate) fn unindex_pool(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        self.change_pool(id, pool, subnet, Change::Leave);
        self.index.spaces.remove(&id);
    }

    /// Adds or removes the entries of a pool that follow from its row and its subnet.
    fn change_pool(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet, change: Change) {
        for key in default_keys(id, &pool.spec, subnet) {
            change.in_set(&mut self.index.default_pools, key);
        }
        match change {
            Change::Enter => {
                self.index.name_pool(id, &pool.spec, subnet);
                self.index.own(id, pool, subnet);
            }
            Change::Leave => {
                self.index.unname_pool(&pool.spec, subnet);
                self.index.disown(id, pool, subnet);
            }
        }
        self.count_pool(pool, subnet, change == Change::Enter);
    }

    /// Reshapes a pool's space according to its present rows.
    pub(crate) fn reshape_pool(&mut self, id: PoolId, shape: Shape, network: NetworkId) {
        let Index { spaces, occupants, blocks, .. } = &mut self.index;
        let Some(space) = spaces.get_mut(&id).map(Arc::make_mut) else {
            broken(SPACE_OF_POOL, format!("pool {id}"))
        };
        let family = space.family;
        space.reshape(shape, |first, last| {
            let addresses = occupants.range(network, family.address(first), family.address(last));
            let addresses = addresses.map(|(address, _)| number(address));
            let addresses = addresses.map(|address| (address, address));
            let cut = crate::state::division::blocks_within(blocks, id.into(), first, last);
            addresses.chain(cut.map(move |(start, (end, _))| (start.max(first), end.min(last))))
        });
    }

    /// Rebuilds the set of addresses that the reservations of a network cover.
    pub(crate) fn index_reservations(&mut self, network: NetworkId) {
        let all: Vec<AddressRange> = self
            .reservations
            .iter()
            .filter(|(_, row)| row.network == network)
            .flat_map(|(_, row)| row.spec.addresses.iter().copied())
            .collect();
        for family in Family::BOTH {
            let covered = RangeSet::new(family, &all);
            if covered.is_empty() {
                self.index.reserved.remove(&(network, family));
            } else {
                self.index.reserved.insert((network, family), Arc::new(covered));
            }
        }
    }
}
