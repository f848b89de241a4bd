//! `/v1/networks`.

use ipam_api::address::AddressRange;
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Labels, Network, NetworkStatus, Resource};
use ipam_raft::machine::command::{Expect, Kind, NetworkIntention, Put, Stored};
use ipam_raft::machine::{Action, State, model};

use super::convert::{labels, meta, remarks};
use super::list::{Field, Shape};
use super::resource::Kinded;
use super::subnet::allocated_in;

/// Networks.
pub(super) struct Networks;

/// What can be asked of the list.
pub(super) const SHAPE: Shape = Shape {
    path: "/v1/networks",
    fields: &[
        Field::text("name", "name"),
        Field::number("subnets", "status.subnets"),
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
        "status",
        "status.subnets",
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
    addressed: false,
};

impl Kinded for Networks {
    const PATH: &'static str = "networks";
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
        state.networks.get(id)
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
        let subnets: Vec<u64> = state.subnets_of(row.meta.id).collect();
        let held = subnets.iter().map(|subnet| allocated_in(state, *subnet));
        let allocated = held.fold(0, u64::saturating_add).min(JSON_INTEGER_MAX);
        let counts = state.counts_of_network(row.meta.id).into();
        let status = NetworkStatus { subnets: subnets.len() as u64, allocated, counts };
        Resource { intention, meta: meta(&row.meta), status }
    }
}
