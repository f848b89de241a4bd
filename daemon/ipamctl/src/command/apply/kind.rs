//! The kinds of resources that files describe.

use ipam_api::host_policy::HostPolicy;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Namespace, Network, Node, Pool, Reservation, Subnet};
use ipam_api::{Problem, strict};
use serde_json::{Map, Value};

use crate::client::resource_type::ResourceType;

/// A kind of resource; in the order in which they stand on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Network,
    Subnet,
    Pool,
    Reservation,
    Node,
    Namespace,
    HostPolicy,
}

/// An expression about the type of the API that a kind stands for.
macro_rules! of_resource_type {
    ($kind:expr, $resource_type:ident => $value:expr) => {
        of_resource_type!(
            $kind, $resource_type => $value;
            Network, Subnet, Pool, Reservation, Node, Namespace, HostPolicy
        )
    };
    ($kind:expr, $resource_type:ident => $value:expr; $($name:ident),*) => {
        match $kind {
            $(Kind::$name => {
                type $resource_type = $name;
                $value
            })*
        }
    };
}

/// A spec as JSON, all its fields in it.
pub(super) type Spec = Map<String, Value>;

impl Kind {
    /// All of them.
    pub(super) const ALL: [Kind; 7] = [
        Kind::Network,
        Kind::Subnet,
        Kind::Pool,
        Kind::Reservation,
        Kind::Node,
        Kind::Namespace,
        Kind::HostPolicy,
    ];

    /// The word for one.
    pub(super) fn word(self) -> &'static str {
        of_resource_type!(self, N => N::WORD)
    }

    /// Their place in the API.
    pub(super) fn path(self) -> &'static str {
        of_resource_type!(self, N => N::PATH)
    }

    /// The kind that a word names.
    pub(super) fn of(word: &str) -> Option<Self> {
        let bare = |word: &str| word.to_ascii_lowercase().replace('-', "");
        let word = bare(word);
        let singular = match word.strip_suffix("ies") {
            Some(stem) => format!("{stem}y"),
            None => word.strip_suffix('s').unwrap_or(&word).to_owned(),
        };
        Self::ALL.into_iter().find(|kind| bare(kind.word()) == singular)
    }

    /// The kind of a resource that doesn't say it: lists have none in their items. Most have a field that the
    /// others don't; networks and nodes are told only as the servers show them.
    pub(super) fn guess(has: impl Fn(&str) -> bool) -> Option<Self> {
        Some(if has("cidr") {
            Kind::Subnet
        } else if has("subnet") {
            Kind::Pool
        } else if has("desired_state") || has("capture") {
            Kind::HostPolicy
        } else if has("addresses") {
            Kind::Reservation
        } else if has("default_ipv4_pools") || has("default_ipv6_pools") || has("quota") {
            Kind::Namespace
        } else if has("status.subnets") {
            Kind::Network
        } else if has("meta") && has("status") && has("realm") {
            Kind::Node
        } else {
            return None;
        })
    }

    /// `network, subnet, … and namespace`.
    pub(super) fn words() -> String {
        let words = Self::ALL.map(Self::word);
        match words.split_last() {
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
    }

    /// Reads a resource strictly, with all defaults said.
    pub(super) fn read(self, json: &[u8]) -> Result<(ResourceName, Spec), Problem> {
        of_resource_type!(self, N => whole::<N>(json))
    }
}

fn whole<N: ResourceType>(json: &[u8]) -> Result<(ResourceName, Spec), Problem> {
    let resource: N = strict::from_slice(json)?;
    match serde_json::to_value(&resource) {
        Ok(Value::Object(fields)) => Ok((resource.name(), fields)),
        _ => Err(Problem::new(ipam_api::Code::Internal, "a resource is not an object")),
    }
}
