//! The kinds of resources that files describe.

use ipam_api::host_policy::HostPolicy;
use ipam_api::name::ResourceName;
use ipam_api::resource::{Namespace, Network, Node, Pool, Reservation, Subnet};
use ipam_api::{Problem, strict};
use serde_json::{Map, Value};

use crate::client::resource_type::ResourceType;

/// Kind of resource, in an order in which each kind depends only on earlier kinds.
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

/// Evaluates an expression with the API type of a kind.
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

/// Spec as a JSON object with all of its fields.
pub(super) type Spec = Map<String, Value>;

impl Kind {
    /// All kinds.
    pub(super) const ALL: [Kind; 7] = [
        Kind::Network,
        Kind::Subnet,
        Kind::Pool,
        Kind::Reservation,
        Kind::Node,
        Kind::Namespace,
        Kind::HostPolicy,
    ];

    /// Singular of the kind.
    pub(super) fn word(self) -> &'static str {
        of_resource_type!(self, N => N::WORD)
    }

    /// Path of the collection in the API.
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

    /// Infers the kind of a resource without `kind`, such as a list item, from fields unique to the kind.
    /// Networks and nodes are recognized only in the form that the servers return.
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

    /// Names of all kinds as in a sentence: separated by commas, with `and` before the last.
    pub(super) fn words() -> String {
        let words = Self::ALL.map(Self::word);
        match words.split_last() {
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
            None => String::new(),
        }
    }

    /// Parses a resource strictly, and adds all defaults.
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
