//! What a pool's intention, its subnet and the reservations make of its addresses.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, number};
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;

use super::command::cause::NeverGiven;
use super::command::{PoolIntention, SubnetIntention};
use super::model::Subnet;
use super::space::Shape;
use super::state::State;

/// Longest IPv4 prefix with a network and a broadcast address (RFC 3021 frees /31).
const EDGES_PREFIX_LENGTH_MAX_V4: u8 = 30;
/// Longest IPv6 prefix with a subnet-router address (RFC 4291 §2.6.1; RFC 6164 frees /127).
const EDGES_PREFIX_LENGTH_MAX_V6: u8 = 126;

/// All of a pool's ranges.
pub(super) fn ranges(pool: &PoolIntention, cidr: IpNet) -> RangeSet {
    let family = Family::of(cidr.addr());
    if pool.ranges.is_empty() {
        return RangeSet::new(family, &[AddressRange::of_cidr(cidr)]);
    }
    RangeSet::new(family, &pool.ranges)
}

/// What a pool owns: its ranges without its exclusions. Nobody else may own it.
pub(super) fn owned(pool: &PoolIntention, cidr: IpNet) -> RangeSet {
    let family = Family::of(cidr.addr());
    ranges(pool, cidr).minus(&RangeSet::new(family, &pool.exclude))
}

/// What a pool could ever give: what it owns, without gateways and edges.
pub(super) fn giveable(pool: &PoolIntention, subnet: &SubnetIntention) -> RangeSet {
    let gateways = subnet.gateway.into_iter().chain(pool.gateway);
    let mut never: Vec<AddressRange> = gateways.map(AddressRange::single).collect();
    if !pool.allow_edges {
        never.extend(edges(subnet.cidr).into_iter().map(AddressRange::single));
    }
    owned(pool, subnet.cidr).minus(&RangeSet::new(Family::of(subnet.cidr.addr()), &never))
}

/// Addresses at the edges of a subnet that hosts don't have: network and broadcast address (IPv4), the
/// subnet-router address (IPv6).
pub(super) fn edges(cidr: IpNet) -> Vec<IpAddr> {
    match cidr {
        IpNet::V4(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V4 => {
            vec![net.network().into(), net.broadcast().into()]
        }
        IpNet::V6(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V6 => vec![net.network().into()],
        _ => Vec::new(),
    }
}

impl State {
    /// The shape that a pool has in the present state.
    pub(super) fn shape_of(&self, pool: &PoolIntention, subnet: &Subnet) -> Shape {
        let family = Family::of(subnet.intention.cidr.addr());
        let ranges = ranges(pool, subnet.intention.cidr);
        let reserved = match self.index.reserved.get(&(subnet.network, family)) {
            Some(all) => ranges.intersection(all),
            None => RangeSet::empty(family),
        };
        Shape { giveable: giveable(pool, &subnet.intention), ranges, reserved }
    }

    /// Whether an address is one of a subnet's that no pool gives: its gateway, or an edge.
    pub(super) fn is_special(subnet: &SubnetIntention, address: IpAddr) -> Option<NeverGiven> {
        if subnet.gateway == Some(address) {
            return Some(NeverGiven::Gateway);
        }
        let edge = edges(subnet.cidr).into_iter().any(|edge| number(edge) == number(address));
        edge.then_some(NeverGiven::Edge)
    }
}
