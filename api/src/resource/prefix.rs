//! Delegated prefixes as HTTP shows them.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::time::Timestamp;

/// Block of addresses that is delegated to an owner and can be divided further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prefix {
    /// Revision that created the prefix; never reused.
    pub id: u64,
    /// CIDR of the prefix.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
    /// Network of the prefix.
    pub network: Name,
    /// Subnet of the prefix.
    pub subnet: Name,
    /// Pool at the root of the prefix's tree.
    pub pool: Name,
    /// The prefix that it is cut from; absent if it is cut from the pool itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Realm of the owner.
    pub realm: Name,
    /// Owner of the prefix: unique in its realm among the prefixes of the same parent.
    pub owner: ObjectName,
    /// The owners from the pool down to this one, with slashes between them.
    pub path: String,
    /// True if the first and the last address are never allocated.
    pub keep_edges: bool,
    /// TTL without a refresh, in milliseconds of log time; kept until released if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Milliseconds of log time until it ends with everything below it, unless it is refreshed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_ms: Option<u64>,
    /// Prefixes that are cut from it.
    pub children: u64,
    /// Time of the delegation.
    pub created_at: Timestamp,
    /// Principal that requested it.
    pub created_by: String,
}
