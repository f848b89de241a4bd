//! Prefixes: blocks of addresses whose owners divide them further.

use crate::value::id::PrefixId;
use ipam_api::name::{Name, ObjectName};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Delegation of a block of addresses to an owner, or refresh of the owner's present block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegate {
    /// Source of the first level.
    pub from: PrefixSource,
    /// The realm of the owners.
    pub realm: Name,
    /// Levels from the top down: each is cut from the one before it, and the last is the requested one.
    pub levels: Vec<PrefixLevel>,
}

/// Complete list of prefixes: they are delegated or wait, and all others are released.
///
/// The others are the realm's prefixes that are cut from the source itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPrefixes {
    pub from: PrefixSource,
    /// The realm of the owners.
    pub realm: Name,
    /// Requested prefixes, each owner once.
    pub prefixes: Vec<PrefixLevel>,
}

/// Source of a prefix. Variants are only ever appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PrefixSource {
    Pool(Name),
    /// Another prefix, by its id.
    Prefix(PrefixId),
}

/// Requested prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixLevel {
    pub owner: ObjectName,
    /// Length of the prefix; without a length the prefix must already exist.
    pub length: Option<u8>,
    /// True if its first and its last address are never allocated.
    pub keep_edges: bool,
    /// TTL without a refresh, in log time. Without one a new prefix is kept until it is released, and an
    /// existing one keeps its TTL.
    pub ttl_ms: Option<u64>,
}

/// Prefix with the data that its owner needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPrefix {
    pub id: PrefixId,
    /// CIDR of the prefix.
    pub cidr: IpNet,
    pub network: Name,
    pub subnet: Name,
    /// Pool at the root of its tree.
    pub pool: Name,
    /// Id of the parent prefix; none if the prefix is cut from the pool itself.
    pub parent: Option<PrefixId>,
    /// Owners from the pool down to this prefix.
    pub path: Vec<ObjectName>,
    /// The realm of its owner.
    pub realm: Name,
    pub owner: ObjectName,
    /// True if its first and its last address are never allocated.
    pub keep_edges: bool,
    /// TTL without a refresh, in log time.
    pub ttl_ms: Option<u64>,
    /// Log time until it ends, unless it is refreshed.
    pub ends_in_ms: Option<u64>,
    /// Prefixes that are cut from it.
    pub children: u64,
    /// Wall time of the delegation.
    pub created_wall_ms: u64,
    /// Principal that requested it.
    pub created_by: crate::value::Text,
}

/// Owner of a prefix: unique among the prefixes of one parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PrefixOwner {
    /// Realm of the name.
    pub realm: Name,
    pub name: ObjectName,
}

/// Bits of the longest address: no prefix is longer.
pub(crate) const LENGTH_MAX: u8 = 128;
