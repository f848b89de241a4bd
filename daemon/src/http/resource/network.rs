//! `/v1/networks`.

use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::resource::{Network, NetworkStatus, Resource};
use ipam_machine::State;
use ipam_machine::command::NetworkSpec;

use super::named::{NamedResource, View, of_kind};
use super::subnet::allocated_in;
use crate::http::convert::{conversions, meta, probing_in, probing_out};
use crate::http::list::{Row, Shape};

pub(in crate::http) struct Networks;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/networks",
    own: &[
        Row::text("name", "name"),
        Row::shown(&["probing", "status"]),
        Row::number("subnets", "status.subnets"),
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
    addressed: false,
};

conversions! { Network <=> NetworkSpec { name, probing(probing_in, probing_out) } }

impl NamedResource for Networks {
    of_kind!(Network, NetworkStatus, networks, PutNetwork, |network| (&network.name).into());

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let subnets: Vec<_> = state.subnets_of(row.meta.id.into()).collect();
        let held = subnets.iter().map(|subnet| allocated_in(state, (*subnet).get()));
        let allocated = held.fold(0, u64::saturating_add).min(JSON_INTEGER_MAX);
        let counts = state.counts_of_network(row.meta.id.into()).into();
        let status = NetworkStatus { subnets: subnets.len() as u64, allocated, counts };
        Resource { spec: to_json(row.spec.clone()), meta: meta(&row.meta), status }
    }
}
