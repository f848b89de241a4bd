//! Namespaces as HTTP shows them.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{Labels, Quota};
use crate::name::{Name, NamePattern, ObjectName};

/// A group of endpoints.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Realm of the namespace.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Name of the namespace.
    pub name: ObjectName,
    /// Default IPv4 pools of its endpoints, for requests that name neither pools nor subnets. Equally
    /// specific pools are tried in this order. Names may have wildcards.
    #[serde(default)]
    pub default_ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools, in the same way.
    #[serde(default)]
    pub default_ipv6_pools: Vec<NamePattern>,
    /// Quota of the namespace and its applications.
    #[serde(default, skip_serializing_if = "Quota::is_empty")]
    pub quota: Quota,
    /// Description for people.
    #[serde(default)]
    pub description: String,
    /// By which pools select namespaces.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Name of the external system that manages the resource.
    pub managed_by: Option<String>,
}

/// Status of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceStatus {
    /// Addresses that its endpoints hold, those of automatic pools included, as its quota counts them.
    pub held: HeldAddresses,
}

/// Numbers of held addresses by family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldAddresses {
    /// IPv4 addresses.
    pub ipv4: u64,
    /// IPv6 addresses.
    pub ipv6: u64,
}
