//! Delegated prefixes as HTTP shows them.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::{Name, ObjectName};
use crate::resource::Condition;
use crate::time::Timestamp;

/// Block of addresses that is delegated to an owner and can be divided further.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prefix {
    /// Revision that created the prefix; never reused. A request that waits has an id of its own.
    pub id: u64,
    /// CIDR of the prefix; absent while its request waits.
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::Cidr>"))]
    pub cidr: Option<IpNet>,
    /// Requested length while the request waits, unless the prefix had to exist already.
    pub length: Option<u8>,
    /// Network of the prefix.
    pub network: Name,
    /// Subnet of the prefix.
    pub subnet: Name,
    /// Pool at the root of the prefix's tree.
    pub pool: Name,
    /// The prefix that it is cut from; absent if it is cut from the pool itself.
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
    pub ttl_ms: Option<u64>,
    /// Milliseconds of log time until it ends with everything below it, unless it is refreshed.
    pub ends_in_ms: Option<u64>,
    /// Prefixes that are cut from it.
    pub children: u64,
    /// Condition `Ready` with the reason for waiting; absent once the prefix is delegated. Reasons:
    /// `PoolExhausted` while no block is free, `PoolNotReady` while the pool delegates nothing, and
    /// `AllocationFailed` if the request may not have a prefix any more.
    pub waiting: Option<Condition>,
    /// Time of the delegation, or since when the request waits.
    pub created_at: Timestamp,
    /// Principal that requested it.
    pub created_by: String,
}
