//! `/v1/subnets`.

use ipam_api::Family;
use ipam_api::address::AddressRange;
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Resource, Subnet, SubnetStatus};
use ipam_raft::machine::command::{Expect, Kind, Put, Stored, SubnetIntention};
use ipam_raft::machine::space::Space;
use ipam_raft::machine::{Action, State, model};

use super::convert::{dns_in, dns_out, labels, meta, remarks};
use super::list::{Field, Shape};
use super::resource::Kinded;

/// Subnets.
pub(super) struct Subnets;

/// What can be asked of the list.
pub(super) const SHAPE: Shape = Shape {
    path: "/v1/subnets",
    fields: &[
        Field::text("name", "name"),
        Field::text("network", "network"),
        Field::address("cidr", "cidr"),
        Field::address("gateway", "gateway"),
        Field::number("vlan", "vlan"),
        Field::number("mtu", "mtu"),
        Field::number("family", "status.family"),
        Field::number("pools", "status.pools"),
        Field::number("allocated", "status.allocated"),
        Field::number("size", "status.counts.size"),
        Field::number("free", "status.counts.free"),
        Field::text("managed_by", "managed_by"),
        Field::number("id", "meta.id"),
        Field::number("revision", "meta.revision"),
        Field::text("created_at", "meta.created_at"),
        Field::text("created_by", "meta.created_by"),
        Field::text("updated_at", "meta.updated_at"),
        Field::text("updated_by", "meta.updated_by"),
    ],
    shown: &[
        "name",
        "network",
        "cidr",
        "gateway",
        "vlan",
        "mtu",
        "routes",
        "dns",
        "status",
        "status.family",
        "status.pools",
        "status.allocated",
        "status.counts",
        "status.counts.size",
        "status.counts.allocated",
        "status.counts.cooling",
        "status.counts.quarantined",
        "status.counts.reserved",
        "status.counts.excluded",
        "status.counts.free",
        "status.counts.saturated",
        "description",
        "labels",
        "annotations",
        "managed_by",
        "meta",
        "meta.id",
        "meta.revision",
        "meta.created_at",
        "meta.created_by",
        "meta.updated_at",
        "meta.updated_by",
    ],
    labelled: true,
    addressed: true,
};

impl Kinded for Subnets {
    const PATH: &'static str = "subnets";
    const KIND: Kind = Kind::Subnet;
    type Intention = Subnet;
    type Status = SubnetStatus;
    type Row = model::Subnet;
    const SHAPE: &'static Shape = &SHAPE;

    fn name(intention: &Subnet) -> ResourceName {
        (&intention.name).into()
    }

    fn put(subnet: Subnet, expect: Expect) -> Action {
        let intention = SubnetIntention {
            name: subnet.name,
            network: subnet.network,
            cidr: subnet.cidr,
            gateway: subnet.gateway,
            vlan: subnet.vlan,
            mtu: subnet.mtu,
            routes: subnet.routes,
            dns: dns_in(subnet.dns),
            remarks: remarks(subnet.description, subnet.labels, subnet.annotations, subnet.managed_by),
        };
        Action::PutSubnet(Put { intention, expect })
    }

    fn labels(intention: &Subnet) -> &Labels {
        &intention.labels
    }

    fn ranges(subnet: &Resource<Subnet, SubnetStatus>) -> Vec<AddressRange> {
        vec![AddressRange::of_cidr(subnet.intention.cidr)]
    }

    fn row(state: &State, id: u64) -> Option<&model::Subnet> {
        state.subnets.get(id)
    }

    fn stored(stored: Stored) -> Option<model::Subnet> {
        match stored {
            Stored::Subnet(row) => Some(row),
            _ => None,
        }
    }

    fn view(state: &State, row: &model::Subnet) -> Resource<Subnet, SubnetStatus> {
        let SubnetIntention { name, network, cidr, gateway, vlan, mtu, routes, dns, remarks } =
            &row.intention;
        let intention = Subnet {
            name: name.clone(),
            network: network.clone(),
            cidr: *cidr,
            gateway: *gateway,
            vlan: *vlan,
            mtu: *mtu,
            routes: routes.clone(),
            dns: dns_out(dns),
            description: remarks.description.to_string(),
            labels: labels(&remarks.labels),
            annotations: labels(&remarks.annotations),
            managed_by: remarks.managed_by.as_ref().map(ToString::to_string),
        };
        let id = row.meta.id;
        let status = SubnetStatus {
            family: Family::of(cidr.addr()),
            pools: state.pools_of(id).count() as u64,
            allocated: allocated_in(state, id),
            counts: state.counts_of_subnet(id).into(),
        };
        Resource { intention, meta: meta(&row.meta), status }
    }
}

/// Addresses held in a subnet, those of prefixes among them, as far as JSON counts.
pub(super) fn allocated_in(state: &State, subnet: u64) -> u64 {
    let held: u128 = state.pools_of(subnet).filter_map(|pool| state.space(pool)).map(Space::held).sum();
    u64::try_from(held).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
}
