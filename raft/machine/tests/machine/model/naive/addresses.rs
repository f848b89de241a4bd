//! The model's addresses: every one in one state, found by walking.

use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipam_api::name::Name;
use ipam_machine::command::{PoolSpec, SubnetSpec};
use ipnet::IpNet;

use crate::model::naive::{Cooling, Held, Model, Pool, all_of};

impl Model {
    pub(crate) fn subnet_of(&self, pool: &PoolSpec) -> &SubnetSpec {
        self.subnets.get(&pool.subnet).expect("a pool's subnet is there")
    }

    pub(crate) fn has(&self, pool: &PoolSpec, address: IpAddr) -> bool {
        if pool.ranges.is_empty() {
            return self.subnet_of(pool).cidr.contains(&address);
        }
        pool.ranges.iter().any(|range| range.contains(&AddressRange::single(address)))
    }

    pub(crate) fn owns(&self, pool: &PoolSpec, address: IpAddr) -> bool {
        self.has(pool, address)
            && !pool.exclude.iter().any(|range| range.contains(&AddressRange::single(address)))
    }

    pub(crate) fn is_edge(&self, pool: &PoolSpec, address: IpAddr) -> bool {
        match self.subnet_of(pool).cidr {
            IpNet::V4(net) => {
                net.prefix_len() < 31 && (address == net.network() || address == net.broadcast())
            }
            IpNet::V6(net) => net.prefix_len() < 127 && address == net.network(),
        }
    }

    pub(crate) fn allocatable(&self, pool: &PoolSpec, address: IpAddr) -> bool {
        let is_gateway = [self.subnet_of(pool).gateway, pool.gateway].contains(&Some(address));
        self.owns(pool, address) && !is_gateway && (pool.allow_edges || !self.is_edge(pool, address))
    }

    pub(crate) fn is_reserved(&self, network: &Name, address: IpAddr) -> bool {
        let covers = |range: &AddressRange| range.contains(&AddressRange::single(address));
        self.reservations.values().any(|one| one.network == *network && one.addresses.iter().any(covers))
    }

    pub(crate) fn holder(&self, network: &Name, address: IpAddr) -> Option<&Held> {
        self.held.iter().find(|one| one.network == *network && one.address == address)
    }

    pub(crate) fn rest(&self, network: &Name, address: IpAddr) -> Option<&Cooling> {
        self.cooling.iter().find(|one| one.network == *network && one.address == address)
    }

    /// The one state that an address of a pool's ranges is in: the first that fits.
    pub(crate) fn state_of(&self, pool: &PoolSpec, address: IpAddr) -> &'static str {
        let network = &self.subnet_of(pool).network;
        if self.holder(network, address).is_some_and(|one| one.pool == pool.name)
            || self.block_at(network, address).is_some_and(|one| one.pool == pool.name)
        {
            "allocated"
        } else if self.quarantine(network, address).is_some_and(|one| one.pool == pool.name) {
            "quarantined"
        } else if self.rest(network, address).is_some_and(|one| one.pool == pool.name) {
            "cooling"
        } else if self.is_reserved(network, address) {
            "reserved"
        } else if !self.allocatable(pool, address) {
            "excluded"
        } else {
            "free"
        }
    }

    /// Addresses of a pool in a state, the lowest first.
    pub(crate) fn in_state(&self, pool: &PoolSpec, state: &str) -> Vec<IpAddr> {
        let cidr = self.subnet_of(pool).cidr;
        all_of(cidr).filter(|a| self.has(pool, *a) && self.state_of(pool, *a) == state).collect()
    }

    /// The free address that a pool gives next: a checked one, if it has one.
    pub(crate) fn fresh_in(&self, pool: &Pool, taken: &[Held]) -> Option<IpAddr> {
        let spec = &pool.spec;
        let is_taken = |a: &IpAddr| taken.iter().any(|one| one.pool == spec.name && one.address == *a);
        let mut free = self.in_state(spec, "free");
        free.retain(|a| !is_taken(a));
        let behind = |a: &&IpAddr| pool.cursor.is_none_or(|cursor| **a > cursor);
        let first_of = |free: &[IpAddr]| {
            let first = match spec.strategy {
                ipam_api::resource::Strategy::Sequential => free.first(),
                ipam_api::resource::Strategy::Random => panic!("the model does not foresee a draw"),
                ipam_api::resource::Strategy::Next => free.iter().find(behind).or(free.first()),
            };
            first.copied()
        };
        let checked: Vec<IpAddr> = free.iter().copied().filter(|a| self.is_checked(spec, *a)).collect();
        first_of(&checked).or_else(|| first_of(&free))
    }

    /// The address that a pool gives next.
    pub(crate) fn next_in(&self, pool: &Pool, taken: &[Held]) -> Option<IpAddr> {
        let spec = &pool.spec;
        let is_taken = |a: &IpAddr| taken.iter().any(|one| one.pool == spec.name && one.address == *a);
        let fresh = self.fresh_in(pool, taken);
        let network = &self.subnet_of(spec).network;
        let longest = || {
            let mut cooling = self.cooling.iter().filter(|one| one.pool == spec.name);
            cooling.find(|one| !self.is_reserved(network, one.address) && !is_taken(&one.address))
        };
        let of_pool = || self.cooling.iter().filter(|one| one.pool == spec.name);
        let used = of_pool().filter(|one| is_taken(&one.address)).count();
        let kept = usize::try_from(spec.cooling_reserve).unwrap();
        match fresh {
            Some(address) => Some(address),
            None if spec.strict_cooling || of_pool().count() <= used + kept => None,
            None => longest().map(|one| one.address),
        }
    }
}
