//! Delegated prefixes as HTTP shows them.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::time::Timestamp;

/// A block of addresses that somebody has, to give out or to divide further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prefix {
    /// The revision that created it; never comes back.
    pub id: u64,
    /// Its addresses.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
    /// Its network.
    pub network: Name,
    /// Its subnet.
    pub subnet: Name,
    /// The pool that it comes from, at whatever depth.
    pub pool: Name,
    /// The prefix that it is cut from; absent if it is cut from the pool itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The system that its owner's name comes from.
    pub realm: Name,
    /// Whose it is: unique among those of one realm that are cut from the same.
    pub owner: ObjectName,
    /// The owners from the pool down to this one, with slashes between them.
    pub path: String,
    /// Whether its first and its last address are never given.
    pub keep_edges: bool,
    /// How long it lives without being refreshed, in log time; for as long as nobody releases it if it doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// In how much log time it ends, with everything below it, if nobody refreshes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_ms: Option<u64>,
    /// Prefixes that are cut from it.
    pub children: u64,
    /// When it was delegated.
    pub created_at: Timestamp,
    /// Who asked for it.
    pub created_by: String,
}
