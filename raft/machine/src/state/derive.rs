//! Parts of the index that follow from several tables: spaces, owners, counts and heads of waiting lines.

use crate::broken::broken;
use crate::command::PoolIntention;
use crate::invariant::SPACE_OF_POOL;
use crate::space::{Shape, Space};
use crate::state::State;
use crate::state::damaged::Damaged;
use crate::state::id::{CoolingId, EndpointId, NetworkId, PoolId};
use crate::state::index::{DefaultKey, Index};
use crate::state::row::{Pool, Subnet};
use ipam_api::address::{AddressRange, number};
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Under which a pool may be taken from unnamed; none if it may not.
pub(crate) fn default_keys(
    id: PoolId,
    pool: &PoolIntention,
    subnet: &Subnet,
) -> impl Iterator<Item = DefaultKey> + use<> {
    let (network, family) = (subnet.network, Family::of(subnet.intention.cidr.addr()));
    let anchors = if pool.default { pool.takers.anchors() } else { Vec::new() };
    let (rank, name) = (pool.takers.rank(), pool.name.clone());
    anchors.into_iter().map(move |anchor| (network, family, anchor, rank, name.clone(), id))
}

impl State {
    /// Derives what follows from several tables, once all of them are there.
    pub(crate) fn index_across(&mut self) -> Result<(), Damaged> {
        let lost = |what: &str, id: u64| Damaged(format!("{what} {id} is named by a row and not there"));
        if self.index.occupants.len() != self.allocations.len() + self.coolings.len() {
            return Err(Damaged("one address is occupied by two rows".to_owned()));
        }
        for (id, row) in self.subnets.iter() {
            if row.intention.cidr.prefix_len() == 0 {
                return Err(Damaged(format!("subnet {id} is larger than any subnet can be")));
            }
            if self.networks.get(row.network).is_none() {
                return Err(lost("network", row.network.get()));
            }
        }
        let networks: Vec<NetworkId> = self.networks.iter().map(|(id, _)| id).collect();
        for network in networks {
            self.index_reservations(network);
        }
        let pools: Vec<(PoolId, Pool)> = self.pools.iter().map(|(id, row)| (id, row.clone())).collect();
        for (id, pool) in &pools {
            let subnet =
                self.subnets.get(pool.subnet).ok_or_else(|| lost("subnet", pool.subnet.get()))?.clone();
            self.index_pool(*id, pool, &subnet);
        }
        let allocated: Vec<(PoolId, IpAddr, EndpointId)> =
            self.allocations.iter().map(|(_, row)| (row.pool, row.address, row.endpoint)).collect();
        let stray = |address: IpAddr| Damaged(format!("{address} is occupied and not its pool's to give"));
        for (pool, address, endpoint) in allocated {
            let space = self.loaded_space_mut(pool).ok_or_else(|| lost("pool", pool.get()))?;
            if !space.giveable.contains(number(address)) {
                return Err(stray(address));
            }
            space.allocated += 1;
            space.occupy(number(address));
            let holder = self.endpoints.get(endpoint).ok_or_else(|| lost("endpoint", endpoint.get()))?;
            let accounts = self.accounts(holder, pool);
            self.count_address(accounts, address, true);
        }
        let coolings: Vec<(CoolingId, PoolId, IpAddr)> =
            self.coolings.iter().map(|(id, row)| (id, row.pool, row.address)).collect();
        for (id, pool, address) in coolings {
            let space = self.loaded_space_mut(pool).ok_or_else(|| lost("pool", pool.get()))?;
            if !space.giveable.contains(number(address)) {
                return Err(stray(address));
            }
            space.cooling.insert(id);
            space.occupy(number(address));
        }
        self.index_blocks()?;
        self.refresh_all_heads();
        Ok(())
    }

    // === The index of pools and reservations ===

    /// The space of a pool that a row names, if it has one. Only loading does not rely on it.
    fn loaded_space_mut(&mut self, pool: PoolId) -> Option<&mut Space> {
        self.index.spaces.get_mut(&pool).map(Arc::make_mut)
    }

    /// The space of a pool.
    pub(crate) fn space_mut(&mut self, pool: PoolId) -> &mut Space {
        match self.loaded_space_mut(pool) {
            Some(space) => space,
            None => broken(SPACE_OF_POOL, format!("pool {pool}")),
        }
    }

    /// Registers a new pool, with all of its addresses vacant.
    pub(crate) fn index_pool(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        self.index.name_pool(id, &pool.intention, subnet);
        self.index.default_pools.extend(default_keys(id, &pool.intention, subnet));
        self.index.own(id, pool, subnet);
        self.count_pool(pool, subnet, true);
        let mut space = Space::empty(subnet.intention.cidr);
        space.reshape(self.shape_of(&pool.intention, subnet), |_, _| std::iter::empty());
        self.index.spaces.insert(id, Arc::new(space));
    }

    /// Writes the row of a pool that is otherwise now, and what is derived from it and its subnet. Its space follows
    /// with [`Self::reshape_pool`].
    pub(crate) fn rewrite_pool(&mut self, id: PoolId, old: &Pool, row: Pool, subnet: &Subnet) {
        for key in default_keys(id, &old.intention, subnet) {
            self.index.default_pools.remove(&key);
        }
        self.index.default_pools.extend(default_keys(id, &row.intention, subnet));
        self.index.unname_pool(&old.intention, subnet);
        self.index.name_pool(id, &row.intention, subnet);
        self.index.disown(id, old, subnet);
        self.index.own(id, &row, subnet);
        self.count_pool(old, subnet, false);
        self.count_pool(&row, subnet, true);
        self.write(id, row);
    }

    /// Forgets a pool. `subnet` is the one that it is cut from.
    pub(crate) fn unindex_pool(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        self.index.unname_pool(&pool.intention, subnet);
        for key in default_keys(id, &pool.intention, subnet) {
            self.index.default_pools.remove(&key);
        }
        self.index.disown(id, pool, subnet);
        self.count_pool(pool, subnet, false);
        self.index.spaces.remove(&id);
    }

    /// Gives a pool's space the shape that its rows now say.
    pub(crate) fn reshape_pool(&mut self, id: PoolId, shape: Shape, network: NetworkId) {
        let Index { spaces, occupants, blocks, .. } = &mut self.index;
        let Some(space) = spaces.get_mut(&id).map(Arc::make_mut) else {
            broken(SPACE_OF_POOL, format!("pool {id}"))
        };
        let family = space.family;
        space.reshape(shape, |first, last| {
            let range = (network, family.address(first))..=(network, family.address(last));
            let addresses = occupants.range(range).map(|((_, address), _)| number(*address));
            let addresses = addresses.map(|address| (address, address));
            let cut = crate::state::division::blocks_within(blocks, id.into(), first, last);
            addresses.chain(cut.map(move |(start, (end, _))| (start.max(first), end.min(last))))
        });
    }

    /// Rebuilds what the reservations of a network cover.
    pub(crate) fn index_reservations(&mut self, network: NetworkId) {
        let all: Vec<AddressRange> = self
            .reservations
            .iter()
            .filter(|(_, row)| row.network == network)
            .flat_map(|(_, row)| row.intention.addresses.iter().copied())
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
