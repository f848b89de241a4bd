//! Requests that delegate and release prefixes.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::{Name, ObjectName};
use crate::resource::Prefix;

/// `POST /v1/prefixes`: delegates the lowest free aligned block of a length. A repetition returns the same
/// prefix, and refreshes it and all above it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelegateRequest {
    /// The pool that it is cut from. Either this or `parent`.
    pub pool: Option<Name>,
    /// The prefix that it is cut from, by its id.
    pub parent: Option<u64>,
    /// Realm of the owners.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Intermediate prefixes from the top down. A missing one that has a length is delegated first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<PrefixLevel>,
    /// Owner of the prefix: unique in its realm among the prefixes of the same parent.
    pub owner: ObjectName,
    /// Its length; without one it must be there already.
    pub length: Option<u8>,
    /// True if the first and the last address are never allocated.
    #[serde(default)]
    pub keep_edges: bool,
    /// TTL without a refresh, in milliseconds of log time. Without it a new prefix is kept until it is
    /// released, and an existing one keeps its TTL.
    pub ttl_ms: Option<u64>,
    /// True to wait while no block is free: the request is queued and served as soon as possible. A
    /// repetition returns the prefix; a release by the returned id withdraws the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

/// `PUT /v1/prefixes`: exactly these prefixes. What is listed is delegated, or waits while no block is free.
/// All other prefixes of the realm that are cut from the pool or the parent itself are released, with
/// everything below them. A repetition changes nothing.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetPrefixesRequest {
    /// The pool that they are cut from. Either this or `parent`.
    pub pool: Option<Name>,
    /// The prefix that they are cut from, by its id.
    pub parent: Option<u64>,
    /// Realm of the owners. Prefixes of other realms stay.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// The prefixes, each owner once. An empty list releases all.
    pub prefixes: Vec<PrefixLevel>,
}

/// The answer to a list of prefixes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefixesSet {
    /// The listed prefixes, in the order of the request; without `cidr` while they wait.
    pub prefixes: Vec<Prefix>,
    /// Prefixes that this request released, and waiting requests that it withdrew.
    pub released: Vec<ReleasedPrefix>,
    /// True while released prefixes of this realm are being cleared away with later commands.
    pub ending: bool,
    /// Revision after the request.
    pub revision: u64,
}

/// A prefix that a list left out.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleasedPrefix {
    /// Id of the prefix, or of the request that waited.
    pub id: u64,
    /// Owner of the prefix.
    pub owner: ObjectName,
    /// CIDR of the prefix; absent for a request that waited.
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::Cidr>"))]
    pub cidr: Option<IpNet>,
}

/// A prefix of a list, or on the way to another.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PrefixLevel {
    /// Owner of the prefix.
    pub owner: ObjectName,
    /// Its length; without one it must be there already.
    pub length: Option<u8>,
    /// True if the first and the last address are never allocated.
    #[serde(default)]
    pub keep_edges: bool,
    /// TTL without a refresh, in milliseconds of log time.
    pub ttl_ms: Option<u64>,
}

/// The answer to a request for a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegated {
    /// Requested prefix; without `cidr` while the request waits.
    pub prefix: Prefix,
    /// Intermediate prefixes from the top down.
    pub through: Vec<Prefix>,
    /// True if all prefixes existed already.
    pub repeated: bool,
    /// The state in which it is so.
    pub revision: u64,
}

/// The answer to the release of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefixReleased {
    /// Released CIDRs, as far as they are free already.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::Cidr>"))]
    pub cidrs: Vec<IpNet>,
    /// True if the release continues with later commands, since many prefixes and addresses were below it.
    pub ending: bool,
    /// Revision after the request.
    pub revision: u64,
}
