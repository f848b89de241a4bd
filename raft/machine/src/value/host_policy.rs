//! Specs of host policies.

use std::collections::BTreeMap;

use ipam_api::name::{InterfaceName, Name};
use ipam_api::{Family, Selector};
use serde::{Deserialize, Serialize};

use crate::value::{Metadata, Text};

/// Desired state of a host policy. The machine doesn't read its template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPolicySpec {
    pub name: Name,
    /// Realm of its nodes.
    pub realm: Name,
    /// Labels of its nodes.
    pub node_selector: Selector,
    /// Interfaces with their pools.
    pub interfaces: Vec<HostPolicyInterface>,
    /// Captures by name.
    pub capture: BTreeMap<Text, Text>,
    /// Desired state of nmstate, as JSON without white space, with sorted keys.
    pub desired_state: Text,
    /// Nodes that a roll-out changes at once.
    pub max_unavailable: MaxUnavailable,
    /// Metadata of operators.
    pub metadata: Metadata,
}

/// Interface of the hosts of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPolicyInterface {
    pub name: InterfaceName,
    /// IPv4 pools to try.
    pub ipv4_pools: Vec<Name>,
    /// IPv6 pools to try.
    pub ipv6_pools: Vec<Name>,
    /// True if no default route through the gateways is configured.
    pub clean_gateway: bool,
}

impl HostPolicyInterface {
    /// Pools of a family.
    #[must_use]
    pub fn pools(&self, family: Family) -> &[Name] {
        match family {
            Family::V4 => &self.ipv4_pools,
            Family::V6 => &self.ipv6_pools,
        }
    }
}

/// Number of nodes that a roll-out changes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MaxUnavailable {
    /// This number of nodes.
    Count(u32),
    /// This percentage of the policy's nodes.
    Percent(u8),
}

impl std::fmt::Display for MaxUnavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
