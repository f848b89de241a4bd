//! Machine-readable context of a problem: names, numbers and pointers into the body.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::address::Family;
use crate::name::{InterfaceName, Name, ObjectName};
use crate::problem::Code;
use crate::resource::{Counts, EndpointKey};

/// Machine-readable context. The present fields depend on the code.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// With `revision-mismatch`: the present revision, as `If-Match` takes it.
    pub current: Option<String>,
    /// With `revision-mismatch`: principal of the last change.
    pub changed_by: Option<String>,
    /// With `revision-mismatch`: the fields of the last change; none if it was the creation.
    pub changed_fields: Option<Vec<String>>,
    /// With `in-use`: how many addresses are held.
    pub held: Option<u64>,
    /// With `in-use`: some of the held addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Holder>,
    /// Of a transaction: the step that was refused, counted from 0.
    pub step: Option<u32>,
    /// With `managed-elsewhere`: the manager.
    pub managed_by: Option<String>,
    /// With `pool-exhausted` and similar codes: the interface without an address.
    pub interface: Option<InterfaceName>,
    /// With `pool-exhausted`, `quota-exceeded` and the like: of which family.
    pub family: Option<Family>,
    /// With `pool-exhausted`: milliseconds of log time until the first cooling ends.
    pub next_free_ms: Option<u64>,
    /// With `overloaded` and `too-many-requests`: milliseconds before a repetition has a chance.
    pub retry_after_ms: Option<u64>,
    /// With `pool-exhausted` and similar codes: the rejection of each pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolVerdict>,
    /// With `quota-exceeded`: the namespace or application, its limit and its usage.
    pub quota: Option<QuotaUse>,
    /// With `not-found`: names that exist and look like it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<String>,
}

/// Rejection of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolVerdict {
    /// The pool.
    pub pool: Name,
    /// Reason, in a few words.
    pub verdict: String,
    /// Numbers of the pool's addresses by state.
    pub counts: Counts,
}

/// A quota of which too little is left.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaUse {
    /// The realm of the namespace that has it.
    pub realm: Name,
    /// The namespace.
    pub namespace: ObjectName,
    /// The application that it bounds, as `group/kind/name`; without it the whole namespace.
    pub application: Option<String>,
    /// Limit of the quota, in addresses of the family.
    pub limit: u64,
    /// Addresses that are held.
    pub held: u64,
    /// Additional addresses that were requested.
    pub asked: u64,
}

/// A held address with its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// The address.
    pub address: IpAddr,
    /// Endpoint that holds the address.
    pub endpoint: EndpointKey,
}

/// Error in one field of the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the field: `/ranges/0`; empty for the whole body.
    pub pointer: String,
    /// Code of the error.
    #[serde(deserialize_with = "super::known_code")]
    pub code: Code,
    /// One sentence.
    pub detail: String,
}
