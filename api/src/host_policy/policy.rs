//! Host policies as HTTP shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::MaxUnavailable;
use crate::name::{InterfaceName, Name};
use crate::resource::Labels;
use crate::selector::Selector;

/// Template of the network configuration of hosts, with addresses of pools.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostPolicy {
    /// Name of the policy.
    pub name: Name,
    /// Realm of its nodes. Can't be changed.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Labels of the nodes that it applies to; all nodes of the realm if empty.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub node_selector: Selector,
    /// Interfaces with their pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostPolicyInterface>,
    /// Captures by name. `ippool.POOL.allocate` stands for an address of that pool; nmpolicy evaluates the
    /// others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// Desired state of nmstate: an object. A string `{{ capture.NAME.ip }}` stands for a value of a capture.
    #[serde(default = "empty_object")]
    pub desired_state: Value,
    /// Nodes that a roll-out changes at once: a count, or a percentage as `"50%"`.
    #[serde(default)]
    pub max_unavailable: MaxUnavailable,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// For selecting.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Interface of the hosts of a policy, with the pools of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostPolicyInterface {
    /// Name of the interface on each host.
    pub name: InterfaceName,
    /// IPv4 pools to try, in this order; without any the interface gets no IPv4 address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv4_pools: Vec<Name>,
    /// IPv6 pools to try, in the same way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ipv6_pools: Vec<Name>,
    /// True if the interface's routers get no default route.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean_gateway: bool,
}

/// Status of a host policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostPolicyStatus {
    /// Number of nodes that match its selector.
    pub nodes: u64,
    /// Number of hosts that hold its addresses.
    pub holding: u64,
}
