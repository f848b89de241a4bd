//! Shapes of pools: the addresses that follow from a spec, its subnet and the reservations.

use crate::value::shape::{allocatable, edges, ranges};
use std::net::IpAddr;

use crate::space::free_set::FreeSet;
use ipam_api::address::{AddressRange, number};
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;

use crate::command::{PoolSpec, SubnetSpec};
use crate::space::Shape;
use crate::state::State;
use crate::state::row::Subnet;
use crate::value::cause::NeverGiven;

impl State {
    /// The shape that a pool has in the present state.
    pub(crate) fn shape_of(&self, pool: &PoolSpec, subnet: &Subnet) -> Shape {
        let family = Family::of(subnet.spec.cidr.addr());
        let ranges = ranges(pool, subnet.spec.cidr);
        let reserved = match self.index.reserved.get(&(subnet.network, family)) {
            Some(all) => ranges.intersection(all),
            None => RangeSet::empty(family),
        };
        Shape { allocatable: allocatable(pool, &subnet.spec), ranges, reserved }
    }

    /// Returns the reason for which no pool allocates an address of a subnet: gateway or edge address.
    pub(crate) fn is_special(subnet: &SubnetSpec, address: IpAddr) -> Option<NeverGiven> {
        if subnet.gateway == Some(address) {
            return Some(NeverGiven::Gateway);
        }
        let edge = edges(subnet.cidr).into_iter().any(|edge| number(edge) == number(address));
        edge.then_some(NeverGiven::Edge)
    }
}

/// Free set of a subnet in which no pool owns an address.
pub(crate) fn all_unassigned(cidr: IpNet) -> FreeSet {
    let whole = AddressRange::of_cidr(cidr);
    let mut all = FreeSet::nothing_free(number(cidr.network()), cidr.max_prefix_len() - cidr.prefix_len());
    all.give(whole.first(), whole.last());
    all
}
