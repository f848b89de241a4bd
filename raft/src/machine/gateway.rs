//! Gateways and routes of subnets and pools: what may be said of them, and that nobody is given a gateway.
//!
//! A pool excludes its own gateway, as it does its subnet's. No other pool may own it, unless that one never gives it
//! either: it is refused wherever a pool or a gateway would come to lie so.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::ROUTES_MAX;
use ipam_api::name::Name;
use ipam_api::resource::Route;
use ipnet::IpNet;

use super::check::{check_host_bits, within};
use super::command::cause::{Counted, NamedPrefix, UsedBy};
use super::command::{Cause, PoolIntention, Refusal};
use super::model::Subnet;
use super::shape::{edges, giveable};
use super::state::State;
use super::step::Step;

/// Network, family, the address, and the pool whose gateway it is.
pub(super) type GatewayKey = (u64, Family, u128, u64);

/// Under which a pool's gateway is found, if a pool could have it: link-local ones may be of no subnet.
pub(super) fn gateway_key(id: u64, pool: &PoolIntention, subnet: &Subnet) -> Option<GatewayKey> {
    let gateway = within_subnet(pool.gateway, subnet)?;
    Some((subnet.network, Family::of(gateway), number(gateway), id))
}

fn within_subnet(gateway: Option<IpAddr>, subnet: &Subnet) -> Option<IpAddr> {
    gateway.filter(|gateway| subnet.intention.cidr.contains(gateway))
}

/// Refuses a gateway that no host of a subnet could have.
pub(super) fn check_gateway(cidr: IpNet, gateway: IpAddr) -> Result<(), Refusal> {
    if Family::of(gateway) != Family::of(cidr.addr()) {
        return Err(Cause::GatewayFamily { gateway, cidr }.into());
    }
    if is_link_local(gateway) {
        return Ok(());
    }
    if !cidr.contains(&gateway) {
        return Err(Cause::GatewayOutside { gateway, cidr }.into());
    }
    if edges(cidr).contains(&gateway) {
        return Err(Cause::GatewayOnEdge { gateway, cidr }.into());
    }
    Ok(())
}

/// Refuses routes that hosts of a subnet can't have.
pub(super) fn check_routes(cidr: IpNet, routes: &[Route]) -> Result<(), Refusal> {
    within(Counted::Routes, routes.len(), ROUTES_MAX)?;
    for (i, route) in routes.iter().enumerate() {
        let (destination, gateway) = (route.destination, route.gateway);
        check_host_bits(destination)?;
        let family = Family::of(cidr.addr());
        if Family::of(route.destination.addr()) != family || Family::of(route.gateway) != family {
            return Err(Cause::RouteFamily { destination, family }.into());
        }
        if route.destination.prefix_len() == 0 {
            return Err(Cause::DefaultRoute.into());
        }
        if !cidr.contains(&route.gateway) && !is_link_local(route.gateway) {
            return Err(Cause::RouteOutside { gateway, cidr }.into());
        }
        if routes.iter().take(i).any(|other| other.destination == route.destination) {
            return Err(Cause::RouteTwice { destination }.into());
        }
    }
    Ok(())
}

/// fe80::/10 and 169.254.0.0/16: a router may have such an address on any subnet.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

impl Step<'_> {
    /// Refuses a pool's gateway and routes that its subnet can't have, and with which some pool would give a gateway.
    pub(super) fn check_gateway_of_pool(
        &self,
        pool: &PoolIntention,
        subnet: &Subnet,
        own_id: Option<u64>,
    ) -> Result<(), Refusal> {
        let cidr = subnet.intention.cidr;
        pool.gateway.map_or(Ok(()), |gateway| check_gateway(cidr, gateway))?;
        check_routes(cidr, &pool.routes)?;
        if let Some(gateway) = within_subnet(pool.gateway, subnet)
            && let Some(owner) = self.state.pool_at(subnet.network, gateway).filter(|id| Some(*id) != own_id)
            && self.state.space(owner).is_some_and(|space| space.giveable.contains(number(gateway)))
        {
            return Err(given_away(gateway, &pool.name, &self.state.name_of_pool(owner)));
        }
        for range in giveable(pool, &subnet.intention).ranges() {
            let mut gateways = self.state.gateways_in(subnet.network, range);
            if let Some((gateway, other)) = gateways.find(|(_, id)| Some(*id) != own_id) {
                return Err(given_away(gateway, &self.state.name_of_pool(other), &pool.name));
            }
        }
        Ok(())
    }

    /// Refuses another gateway of a subnet that somebody holds, or without which a pool would give another one's.
    pub(super) fn check_gateway_of_subnet(&self, old: &Subnet, new: Option<IpAddr>) -> Result<(), Refusal> {
        self.check_can_be_gateway(old, new)?;
        let Some(former) = within_subnet(old.intention.gateway, old) else { return Ok(()) };
        let other = self.state.gateways_in(old.network, AddressRange::single(former)).next();
        let owner = self.state.pool_at(old.network, former).and_then(|id| self.state.pools.get(id));
        match (owner.filter(|owner| owner.intention.gateway != Some(former)), other) {
            (Some(owner), Some((_, other))) => {
                Err(given_away(former, &self.state.name_of_pool(other), &owner.intention.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a gateway that somebody holds.
    pub(super) fn check_can_be_gateway(
        &self,
        subnet: &Subnet,
        gateway: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let Some(gateway) = within_subnet(gateway, subnet) else { return Ok(()) };
        let by = if let Some((_, held)) = self.state.allocation_at(subnet.network, gateway) {
            UsedBy::Endpoint(self.state.holder(held.endpoint))
        } else if let Some((prefix, row)) = self.state.prefix_at(subnet.network, gateway) {
            UsedBy::Prefix(NamedPrefix::of(prefix, row))
        } else {
            return Ok(());
        };
        Err(Cause::GatewayInUse { gateway, by }.into())
    }
}

fn given_away(gateway: IpAddr, of: &Name, by: &Name) -> Refusal {
    Cause::GatewayOffered { gateway, of: of.clone(), by: by.clone() }.into()
}

impl State {
    /// Gateways of pools in a range, the lowest first, each with its pool.
    fn gateways_in(&self, network: u64, range: AddressRange) -> impl Iterator<Item = (IpAddr, u64)> + '_ {
        let family = range.family();
        let (from, to) = ((network, family, range.first(), 0), (network, family, range.last(), u64::MAX));
        self.index.gateways.range(from..=to).map(move |(_, _, number, id)| (family.address(*number), *id))
    }

    /// Whether an address is a pool's gateway, and the last one from there on that is so, or isn't.
    pub(super) fn gateway_stretch(&self, network: u64, family: Family, at: u128) -> (bool, u128) {
        let (from, to) = ((network, family, at, 0), (network, family, u128::MAX, u64::MAX));
        match self.index.gateways.range(from..=to).next() {
            Some((_, _, gateway, _)) if *gateway == at => (true, at),
            Some((_, _, gateway, _)) => (false, gateway - 1),
            None => (false, u128::MAX),
        }
    }
}
