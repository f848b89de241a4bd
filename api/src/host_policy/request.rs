//! Requests about host policies, and their answers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::name::{Name, ObjectName};
use crate::request::is_zero;
use crate::resource::{EndpointKey, Interface};

/// `POST /v1/host-policies/{name}/render`: the configuration of one node, with its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenderHostPolicy {
    /// The node, in the policy's realm.
    pub node: ObjectName,
}

/// Configuration of one node by a host policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderedHostPolicy {
    /// Name of the policy.
    pub policy: Name,
    /// The node.
    pub node: ObjectName,
    /// Endpoint that holds the node's addresses of this policy.
    pub endpoint: EndpointKey,
    /// Interfaces with their addresses.
    pub interfaces: Vec<Interface>,
    /// Captures that nmpolicy evaluates.
    pub capture: BTreeMap<String, String>,
    /// Desired state of nmstate with the addresses of the node.
    pub desired_state: Value,
    /// Revision after the request.
    pub revision: u64,
}

/// `POST /v1/host-policies/{name}/reset`: release of the addresses of a policy.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResetHostPolicy {
    /// The node that loses its addresses; all nodes if absent.
    pub node: Option<ObjectName>,
}

/// Answer to a reset: the released addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostPolicyReset {
    /// Released addresses.
    pub addresses: Vec<IpAddr>,
    /// Number of hosts that still hold addresses of the policy. Repeat the request until it is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Revision after the request.
    pub revision: u64,
}
