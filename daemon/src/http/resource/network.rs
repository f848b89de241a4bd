//! `/v1/networks`.

use ipam_api::address::AddressRange;
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Network, NetworkStatus, Resource};
use ipam_machine::command::{Expect, Kind, NetworkIntention, Put, Stored};
use ipam_machine::{Action, State, model};

use super::named::Kinded;
use super::subnet::allocated_in;
use crate::http::convert::{labels, meta, remarks};
use crate::http::list::{Row, Shape};

/// Networks.
pub(in crate::http) struct Networks;

/// What can be asked of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/networks",
    own: &[
        Row::text("name", "name"),
        Row::shown(&["status"]),
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

impl Kinded for Networks {
    const KIND: Kind = Kind::Network;
    type Intention = Network;
    type Status = NetworkStatus;
    type Row = model::Network;
    const SHAPE: &'static Shape = &SHAPE;

    fn name(intention: &Network) -> ResourceName {
        (&intention.name).into()
    }

    fn put(network: Network, expect: Expect) -> Action {
        let Network { name, description, labels, annotations, managed_by } = network;
        let remarks = remarks(description, labels, annotations, managed_by);
        Action::PutNetwork(Put { intention: NetworkIntention { name, remarks }, expect })
    }

    fn labels(intention: &Network) -> &Labels {
        &intention.labels
    }

    fn ranges(_: &Resource<Network, NetworkStatus>) -> Vec<AddressRange> {
        Vec::new()
    }

    fn row(state: &State, id: u64) -> Option<&model::Network> {
        state.networks.get(id.into())
    }

    fn stored(stored: Stored) -> Option<model::Network> {
        match stored {
            Stored::Network(row) => Some(row),
            _ => None,
        }
    }

    fn view(state: &State, row: &model::Network) -> Resource<Network, NetworkStatus> {
        let remarks = &row.intention.remarks;
        let intention = Network {
            name: row.intention.name.clone(),
            description: remarks.description.to_string(),
            labels: labels(&remarks.labels),
            annotations: labels(&remarks.annotations),
            managed_by: remarks.managed_by.as_ref().map(ToString::to_string),
        };
        let subnets: Vec<_> = state.subnets_of(row.meta.id.into()).collect();
        let held = subnets.iter().map(|subnet| allocated_in(state, (*subnet).get()));
        let allocated = held.fold(0, u64::saturating_add).min(JSON_INTEGER_MAX);
        let counts = state.counts_of_network(row.meta.id.into()).into();
        let status = NetworkStatus { subnets: subnets.len() as u64, allocated, counts };
        Resource { intention, meta: meta(&row.meta), status }
    }
}
