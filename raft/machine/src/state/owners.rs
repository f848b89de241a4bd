//! Addresses of a subnet: owning pools, gateways, reservations and exclusions of pools.

use crate::command::PoolSpec;
use crate::space::Space;
use crate::state::State;
use crate::state::id::{CoolingId, Id, NetworkId, PoolId, SubnetId};
use crate::state::index::Index;
use crate::state::key::GatewayKey;
use crate::state::row::{Cooling, Pool, Subnet};
use crate::value::shape::owned;
use ipam_api::address::{AddressRange, number};
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

/// Key of a pool's gateway, if the gateway lies in the subnet; a link-local one need not.
pub(crate) fn gateway_key(id: PoolId, pool: &PoolSpec, subnet: &Subnet) -> Option<GatewayKey> {
    let gateway = within_subnet(pool.gateway, subnet)?;
    Some((subnet.network, Family::of(gateway), number(gateway), id))
}

pub(crate) fn within_subnet(gateway: Option<IpAddr>, subnet: &Subnet) -> Option<IpAddr> {
    gateway.filter(|gateway| subnet.spec.cidr.contains(gateway))
}

impl Index {
    /// Registers a pool as the owner of its addresses.
    pub(crate) fn own(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        let mut unassigned = self.unassigned.get_mut(&pool.subnet).map(Arc::make_mut);
        for range in owned(&pool.spec, subnet.spec.cidr).ranges() {
            self.owners.insert((subnet.network, range.family(), range.first()), (range.last(), id));
            if let Some(unassigned) = &mut unassigned {
                unassigned.take(range.first(), range.last());
            }
        }
        if let Some(gateway) = gateway_key(id, &pool.spec, subnet) {
            self.gateways.insert(gateway);
        }
    }

    /// Removes a pool as the owner of its addresses.
    pub(crate) fn disown(&mut self, id: PoolId, pool: &Pool, subnet: &Subnet) {
        let mut unassigned = self.unassigned.get_mut(&pool.subnet).map(Arc::make_mut);
        for range in owned(&pool.spec, subnet.spec.cidr).ranges() {
            self.owners.remove(&(subnet.network, range.family(), range.first()));
            if let Some(unassigned) = &mut unassigned {
                unassigned.give(range.first(), range.last());
            }
        }
        if let Some(key) = gateway_key(id, &pool.spec, subnet) {
            self.gateways.remove(&key);
        }
    }
}

impl State {
    /// Milliseconds of log time until the first cooling of a pool ends.
    pub(crate) fn next_free_ms(&self, space: &Space) -> Option<u64> {
        let oldest = space.cooling.first()?;
        Some(self.coolings.get(*oldest)?.until_ms.saturating_sub(self.log_time_ms()))
    }

    /// Number of cooling addresses that a pool may allocate as the last resort.
    pub(crate) fn cooling_to_spare(&self, spec: &PoolSpec, space: &Space) -> usize {
        if spec.strict_cooling {
            return 0;
        }
        let reserve = usize::try_from(spec.cooling_reserve).unwrap_or(usize::MAX);
        space.cooling.len().saturating_sub(reserve)
    }

    /// Gateways of pools in a range, the lowest first, each with its pool.
    pub(crate) fn gateways_in(
        &self,
        network: NetworkId,
        range: AddressRange,
    ) -> impl Iterator<Item = (IpAddr, PoolId)> + '_ {
        let family = range.family();
        let (from, to) =
            ((network, family, range.first(), Id::MIN), (network, family, range.last(), Id::MAX));
        self.index.gateways.range(from..=to).map(move |(_, _, number, id)| (family.address(*number), *id))
    }

    /// Returns whether an address is a pool's gateway, and the last address with the same result.
    pub(crate) fn gateway_stretch(&self, network: NetworkId, family: Family, at: u128) -> (bool, u128) {
        let (from, to) = ((network, family, at, Id::MIN), (network, family, u128::MAX, Id::MAX));
        match self.index.gateways.range(from..=to).next() {
            Some((_, _, gateway, _)) if *gateway == at => (true, at),
            Some((_, _, gateway, _)) => (false, gateway - 1),
            None => (false, u128::MAX),
        }
    }

    /// Owner of an address, and the last address from there on that has the same owner, or none.
    pub(crate) fn owner_from(&self, network: NetworkId, family: Family, at: u128) -> (Option<PoolId>, u128) {
        let owners = &self.index.owners;
        let before = owners.last_in((network, family, 0)..=(network, family, at));
        if let Some((_, (last, pool))) = before.filter(|(_, (last, _))| *last >= at) {
            return (Some(*pool), *last);
        }
        let behind = (Bound::Excluded((network, family, at)), Bound::Included((network, family, u128::MAX)));
        let next = owners.range(behind).next();
        (None, next.map_or(u128::MAX, |((_, _, first), _)| first - 1))
    }

    /// Addresses that pools of a subnet have in their ranges and exclude.
    pub(crate) fn excluded_in(&self, subnet: SubnetId, family: Family) -> RangeSet {
        let ids = self.index.excluding.range((subnet, Id::MIN)..=(subnet, Id::MAX)).map(|(_, id)| *id);
        let excluding = ids.map(|id| (self.pools.named(id), self.space_of(id)));
        let all: Vec<AddressRange> = excluding
            .flat_map(|(pool, space)| {
                let excluded = RangeSet::new(family, &pool.spec.exclude).intersection(&space.ranges);
                excluded.ranges().collect::<Vec<_>>()
            })
            .collect();
        RangeSet::new(family, &all)
    }

    /// Returns true if a reservation covers an address.
    #[must_use]
    pub fn is_reserved(&self, network: NetworkId, address: IpAddr) -> bool {
        let key = (network, Family::of(address));
        let number = number(address);
        self.index.reserved.get(&key).is_some_and(|set| set.contains(number))
    }

    /// Ends the cooling of an address, which becomes free or gets the state that its pool now specifies.
    pub(crate) fn end_cooling(&mut self, id: CoolingId) -> Arc<Cooling> {
        let row = self.erase_named::<Cooling>(id);
        let space = self.space_mut(row.pool);
        space.cooling.remove(&id);
        space.vacate(number(row.address));
        row
    }
}
