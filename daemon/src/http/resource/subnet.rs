//! `/v1/subnets`.

use ipam_api::Family;
use ipam_api::address::AddressRange;
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::resource::{AutomaticRules, Resource, Subnet, SubnetStatus};
use ipam_machine::State;
use ipam_machine::command::{self, SubnetSpec};
use ipam_machine::space::Space;

use super::named::{NamedResource, View, of_kind};
use crate::http::convert::{conversions, dns_in, dns_out, meta, probing_in, probing_out};
use crate::http::list::{Row, Shape};

pub(in crate::http) struct Subnets;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/subnets",
    own: &[
        Row::text("name", "name"),
        Row::text("network", "network"),
        Row::address("cidr", "cidr"),
        Row::address("gateway", "gateway"),
        Row::number("vlan", "vlan"),
        Row::number("mtu", "mtu"),
        Row::shown(&["routes", "dns", "automatic", "probing", "status"]),
        Row::number("family", "status.family"),
        Row::number("pools", "status.pools"),
        Row::number("allocated", "status.allocated"),
        Row::shown(&["status.counts"]),
        Row::number("size", "status.counts.size"),
        Row::shown(&[
            "status.counts.allocated",
            "status.counts.cooling",
            "status.counts.quarantined",
            "status.counts.reserved",
            "status.counts.excluded",
        ]),
        Row::number("free", "status.counts.free"),
        Row::text("managed_by", "managed_by").unshown(),
        Row::shown(&["status.counts.saturated"]),
    ],
    named: true,
    addressed: true,
};

conversions! {
    Subnet <=> SubnetSpec {
        name, network, cidr, gateway, vlan, mtu, routes, dns(dns_in, dns_out), automatic(rules_in, rules_out),
        probing(probing_in, probing_out),
    }
}

fn rules_in(rules: Option<AutomaticRules>) -> Option<command::AutomaticRules> {
    let AutomaticRules { ranges, exclude, max_size } = rules?;
    Some(command::AutomaticRules { ranges, exclude, max_size })
}

fn rules_out(rules: Option<command::AutomaticRules>) -> Option<AutomaticRules> {
    let command::AutomaticRules { ranges, exclude, max_size } = rules?;
    Some(AutomaticRules { ranges, exclude, max_size })
}

impl NamedResource for Subnets {
    of_kind!(Subnet, SubnetStatus, subnets, PutSubnet, |subnet| (&subnet.name).into());

    fn ranges(subnet: &View<Self>) -> Vec<AddressRange> {
        vec![AddressRange::of_cidr(subnet.spec.cidr)]
    }

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let id = row.meta.id;
        let status = SubnetStatus {
            family: Family::of(row.spec.cidr.addr()),
            pools: state.pools_of(id.into()).count() as u64,
            allocated: allocated_in(state, id),
            counts: state.counts_of_subnet(id.into()).into(),
        };
        Resource { spec: to_json(row.spec.clone()), meta: meta(&row.meta), status }
    }
}

/// Addresses held in a subnet, prefixes included, saturated at 2^53 − 1.
pub(super) fn allocated_in(state: &State, subnet: u64) -> u64 {
    let held: u128 =
        state.pools_of(subnet.into()).filter_map(|pool| state.space(pool)).map(Space::held).sum();
    u64::try_from(held).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
}
