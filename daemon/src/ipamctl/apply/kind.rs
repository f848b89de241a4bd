//! The kinds of resources that files describe.

use ipam_api::resource::{Network, Pool, Reservation, Subnet};
use ipam_api::{Name, Problem, strict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A kind of resource; in the order in which they stand on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Network,
    Subnet,
    Pool,
    Reservation,
}

/// An intention as JSON, all its fields in it.
pub(super) type Intention = Map<String, Value>;

impl Kind {
    /// All of them.
    pub(super) const ALL: [Kind; 4] = [Kind::Network, Kind::Subnet, Kind::Pool, Kind::Reservation];

    /// The word for one.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Network => "network",
            Kind::Subnet => "subnet",
            Kind::Pool => "pool",
            Kind::Reservation => "reservation",
        }
    }

    /// Where they are.
    pub(super) fn path(self) -> &'static str {
        match self {
            Kind::Network => "/v1/networks",
            Kind::Subnet => "/v1/subnets",
            Kind::Pool => "/v1/pools",
            Kind::Reservation => "/v1/reservations",
        }
    }

    /// The kind that a word names.
    pub(super) fn of(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let singular = word.strip_suffix('s').unwrap_or(&word);
        Self::ALL.into_iter().find(|kind| kind.word() == singular)
    }

    /// The kind of a resource that doesn't say it: lists have none in their items. Each has a field that the
    /// others don't.
    pub(super) fn guess(has: impl Fn(&str) -> bool) -> Self {
        if has("cidr") {
            Kind::Subnet
        } else if has("subnet") {
            Kind::Pool
        } else if has("addresses") {
            Kind::Reservation
        } else {
            Kind::Network
        }
    }

    /// Reads a resource strictly, with all defaults said.
    pub(super) fn read(self, json: &[u8]) -> Result<(Name, Intention), Problem> {
        match self {
            Kind::Network => whole(json, |network: &Network| network.name.clone()),
            Kind::Subnet => whole(json, |subnet: &Subnet| subnet.name.clone()),
            Kind::Pool => whole(json, |pool: &Pool| pool.name.clone()),
            Kind::Reservation => whole(json, |reservation: &Reservation| reservation.name.clone()),
        }
    }
}

fn whole<T: DeserializeOwned + Serialize>(
    json: &[u8],
    name: impl Fn(&T) -> Name,
) -> Result<(Name, Intention), Problem> {
    let resource: T = strict::from_slice(json)?;
    match serde_json::to_value(&resource) {
        Ok(Value::Object(fields)) => Ok((name(&resource), fields)),
        _ => Err(Problem::new(ipam_api::Code::Internal, "a resource is no object")),
    }
}
