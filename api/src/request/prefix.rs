//! Asking for prefixes, and giving them back.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::resource::Prefix;

/// `POST /v1/prefixes`: the lowest free aligned block of a length. Asking again for the same gives the same, and lets
/// it and all above it live on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelegateRequest {
    /// The pool that it is cut from. Either this or `parent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// The prefix that it is cut from, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// The system that the owners' names come from.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// What is between: each is cut from the one before it, and delegated too if it isn't there and says its length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<PrefixLevel>,
    /// Whose it shall be: unique among those of one realm that are cut from the same.
    pub owner: ObjectName,
    /// Its length; without one it must be there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    /// Whether its first and its last address are never given.
    #[serde(default)]
    pub keep_edges: bool,
    /// How long it lives without being refreshed, in log time. Without it a new prefix is kept until it is released,
    /// and one that is there stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// A prefix on the way to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PrefixLevel {
    /// Whose it is.
    pub owner: ObjectName,
    /// Its length; without one it must be there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u8>,
    /// Whether its first and its last address are never given.
    #[serde(default)]
    pub keep_edges: bool,
    /// How long it lives without being refreshed, in log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// The answer to a request for a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegated {
    /// What was asked for.
    pub prefix: Prefix,
    /// What is between it and where it was asked for, from the top down.
    pub through: Vec<Prefix>,
    /// Whether all of it was there already.
    pub repeated: bool,
    /// The state in which it is so.
    pub revision: u64,
}

/// The answer to the release of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefixReleased {
    /// It, and what was below it, as far as it is free again.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::Cidr>"))]
    pub cidrs: Vec<IpNet>,
    /// Whether more of it becomes free with the next commands: there was much below it.
    pub ending: bool,
    /// The state after it.
    pub revision: u64,
}
