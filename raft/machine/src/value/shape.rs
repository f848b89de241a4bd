//! Addresses that follow from the specs of a pool and its subnet.

use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;

use crate::value::{PoolSpec, SubnetSpec};

/// Longest IPv4 prefix with a network and a broadcast address (RFC 3021 frees /31).
const EDGES_PREFIX_LENGTH_MAX_V4: u8 = 30;

/// Longest IPv6 prefix with a subnet-router address (RFC 4291 §2.6.1; RFC 6164 frees /127).
const EDGES_PREFIX_LENGTH_MAX_V6: u8 = 126;

pub(crate) fn ranges(pool: &PoolSpec, cidr: IpNet) -> RangeSet {
    let family = Family::of(cidr.addr());
    if pool.ranges.is_empty() {
        return RangeSet::new(family, &[AddressRange::of_cidr(cidr)]);
    }
    RangeSet::new(family, &pool.ranges)
}

/// Addresses that a pool owns: its ranges without its exclusions. No other pool may own them.
pub(crate) fn owned(pool: &PoolSpec, cidr: IpNet) -> RangeSet {
    let family = Family::of(cidr.addr());
    ranges(pool, cidr).minus(&RangeSet::new(family, &pool.exclude))
}

/// Addresses that a pool could ever allocate: those that it owns, without gateways and edge addresses.
pub(crate) fn allocatable(pool: &PoolSpec, subnet: &SubnetSpec) -> RangeSet {
    let gateways = subnet.gateway.into_iter().chain(pool.gateway);
    let mut never: Vec<AddressRange> = gateways.map(AddressRange::single).collect();
    if !pool.allow_edges {
        never.extend(edges(subnet.cidr).into_iter().map(AddressRange::single));
    }
    owned(pool, subnet.cidr).minus(&RangeSet::new(Family::of(subnet.cidr.addr()), &never))
}

/// Edge addresses of a subnet, which hosts can't use. IPv4: network and broadcast address; IPv6:
/// subnet-router address.
pub(crate) fn edges(cidr: IpNet) -> Vec<IpAddr> {
    match cidr {
        IpNet::V4(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V4 => {
            vec![net.network().into(), net.broadcast().into()]
        }
        IpNet::V6(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V6 => vec![net.network().into()],
        _ => Vec::new(),
    }
}
