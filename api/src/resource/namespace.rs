//! Namespaces as HTTP shows them.

use serde::{Deserialize, Serialize};

use super::{Labels, Quota};
use crate::name::{Name, NamePattern, ObjectName};

/// A group of endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// The system that its name comes from.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Its name.
    pub name: ObjectName,
    /// IPv4 pools that its endpoints try, in this order where they are equally specific, unless their request names
    /// pools or subnets. Names may have wildcards.
    #[serde(default)]
    pub default_ipv4_pools: Vec<NamePattern>,
    /// IPv6 pools, in the same way.
    #[serde(default)]
    pub default_ipv6_pools: Vec<NamePattern>,
    /// How many addresses it and its applications may have.
    #[serde(default, skip_serializing_if = "Quota::is_empty")]
    pub quota: Quota,
    /// A sentence for people.
    #[serde(default)]
    pub description: String,
    /// By which pools select namespaces.
    #[serde(default)]
    pub labels: Labels,
    /// For other programs.
    #[serde(default)]
    pub annotations: Labels,
    /// Who keeps it in another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// What is the case with a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceStatus {
    /// How many addresses its endpoints hold, those of automatic pools included, as its quota counts them.
    pub held: HeldAddresses,
}

/// How many addresses somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldAddresses {
    /// IPv4 addresses.
    pub ipv4: u64,
    /// IPv6 addresses.
    pub ipv6: u64,
}
