//! `/v1/networks`.

use ipam_api::name::Name;
use ipam_api::resource::{Network, NetworkStatus, Resource};
use ipam_raft::machine::command::{Expect, Kind, NetworkIntention, Put, Stored};
use ipam_raft::machine::{Action, State, model};

use super::convert::{labels, meta, remarks};
use super::resource::Kinded;
use super::subnet::allocated_in;

/// Networks.
pub(super) struct Networks;

impl Kinded for Networks {
    const PATH: &'static str = "networks";
    const KIND: Kind = Kind::Network;
    type Intention = Network;
    type Status = NetworkStatus;
    type Row = model::Network;

    fn name(intention: &Network) -> &Name {
        &intention.name
    }

    fn put(network: Network, expect: Expect) -> Action {
        let Network { name, description, labels, annotations, managed_by } = network;
        let remarks = remarks(description, labels, annotations, managed_by);
        Action::PutNetwork(Put { intention: NetworkIntention { name, remarks }, expect })
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
        let allocated = subnets.iter().map(|subnet| allocated_in(state, *subnet)).sum();
        let status = NetworkStatus { subnets: subnets.len() as u64, allocated };
        Resource { intention, meta: meta(&row.meta), status }
    }
}
