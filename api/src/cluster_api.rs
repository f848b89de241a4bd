//! Specs of the pool kinds for Cluster API.
//!
//! The specs have the fields of the in-cluster provider's pools
//! (`kubernetes-sigs/cluster-api-ipam-provider-in-cluster`, `v1alpha2`), and additionally `network` and
//! `poolRef`.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[cfg(feature = "schema")]
use crate::limits::{COOLING_MS_MAX, RANGES_MAX};
use crate::name::Name;

/// Length of the prefixes of an IPv6 pool that specifies none.
pub const ALLOCATION_PREFIX_LENGTH_DEFAULT: u8 = 64;
/// Characters of the longest entry: a range of two IPv6 addresses, each with an IPv4 address at its end.
#[cfg(feature = "schema")]
const ENTRY_CHARS_MAX: usize = 2 * ADDRESS_CHARS_MAX + 1;
/// Characters of the longest address.
#[cfg(feature = "schema")]
const ADDRESS_CHARS_MAX: usize = 45;

/// Spec of `IPPool` and `GlobalIPPool`: addresses, or a pool that exists.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct IpPoolSpec {
    /// Addresses, ranges (`A-B`) and CIDRs of one family and one subnet. Required without `poolRef`.
    #[cfg_attr(feature = "schema", schemars(length(max = RANGES_MAX), inner(length(max = ENTRY_CHARS_MAX))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Prefix length of the subnet. Required without `poolRef`.
    #[cfg_attr(feature = "schema", schemars(range(max = 128)))]
    pub prefix: Option<u8>,
    /// Address of the router; never allocated.
    #[cfg_attr(feature = "schema", schemars(length(max = ADDRESS_CHARS_MAX)))]
    pub gateway: Option<String>,
    /// True to allocate the first address of the subnet, and for IPv4 the last one.
    #[serde(rename = "allocateReservedIPAddresses", skip_serializing_if = "std::ops::Not::not")]
    pub allocate_reserved_ip_addresses: bool,
    /// Addresses, ranges and CIDRs that are never allocated.
    #[cfg_attr(feature = "schema", schemars(length(max = RANGES_MAX), inner(length(max = ENTRY_CHARS_MAX))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_addresses: Vec<String>,
    /// Seconds of log time for which a released address is not allocated again. Without it the address cools
    /// for the usual time, and is allocated earlier if no other address is free.
    #[cfg_attr(feature = "schema", schemars(range(max = COOLING_MS_MAX / 1000)))]
    pub address_reuse_grace_period_seconds: Option<u32>,
    /// Network of ipamd in which the addresses are unique.
    pub network: Option<Name>,
    /// Existing pool of ipamd, in place of addresses.
    pub pool_ref: Option<PoolReference>,
}

/// Spec of `PrefixPool` and `GlobalPrefixPool`: prefixes, or a pool that exists.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PrefixPoolSpec {
    /// CIDRs of one family without host bits. Required without `poolRef`.
    #[cfg_attr(feature = "schema", schemars(length(max = RANGES_MAX), inner(length(max = ENTRY_CHARS_MAX))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Length of a delegated prefix. Default: 64 for IPv6; required for IPv4. Can't be changed.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 128)))]
    pub allocation_prefix_length: Option<u8>,
    /// Address of a router, for information: it is passed on with each prefix, and excludes none.
    #[cfg_attr(feature = "schema", schemars(length(max = ADDRESS_CHARS_MAX)))]
    pub gateway: Option<String>,
    /// Addresses, ranges and CIDRs that no delegated prefix contains.
    #[cfg_attr(feature = "schema", schemars(length(max = RANGES_MAX), inner(length(max = ENTRY_CHARS_MAX))))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded_prefixes: Vec<String>,
    /// Network of ipamd in which the addresses are unique.
    pub network: Option<Name>,
    /// Existing pool of ipamd, in place of prefixes.
    pub pool_ref: Option<PoolReference>,
}

/// Reference to a pool of ipamd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolReference {
    /// Name of the pool.
    pub name: Name,
}
