//! Nodes as HTTP shows them.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Labels;
use crate::name::{Name, ObjectName};
use crate::node_report::NodeAgent;

/// Host with its labels. A node without such a resource may send requests, but no pool selects it by labels.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Realm of the node.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Name of the node.
    pub name: ObjectName,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// By which pools select nodes.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

/// Status of a node.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeStatus {
    /// Boot id of its present boot; absent before the first request or heartbeat.
    pub boot_id: Option<String>,
    /// Newest report of its agent; absent before the first one.
    pub agent: Option<NodeAgent>,
}
