//! Explanation of an allocation: the addresses that a request would get, and the reason.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Problem;
use crate::address::{AddressRange, Family};
use crate::name::{InterfaceName, Name};
use crate::resource::{Counts, Interface};

/// Response to `POST /v1/allocations/explain`: the result of the request now, and its derivation. Nothing is
/// allocated.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// `given`, `repeated` (allocated already) or `refused`.
    pub outcome: String,
    /// Interfaces that would be allocated; empty for a refusal.
    pub interfaces: Vec<Interface>,
    /// Problem that the request would get.
    pub problem: Option<Problem>,
    /// For each interface and family, what is chosen from. None where nothing has to be chosen.
    pub choices: Vec<Choice>,
    /// Remedies for a refusal.
    pub helps: Vec<Help>,
    /// Revision of the evaluated state.
    pub revision: u64,
}

/// Candidates of one interface for one family.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The interface.
    pub interface: InterfaceName,
    /// The family.
    pub family: Family,
    /// Source of the candidates. One of `subnets`, `automatic`, `request`, `namespace`, `configuration` and
    /// `default`.
    pub came_from: String,
    /// The pools, in the order in which they are tried.
    pub candidates: Vec<Candidate>,
    /// True if there are more candidates than shown or counted.
    pub more: bool,
    /// Default pools that are not tried, since they are not for the caller, by reason. The first of each is
    /// named, and with `all_skipped=true` the others, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Pool that would allocate the address.
    pub pool: Option<Name>,
    /// Address that would be allocated.
    pub address: Option<IpAddr>,
    /// True if the endpoint keeps its present address here, regardless of the order of the pools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// Default pools that are skipped for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// The code of the reason.
    pub verdict: String,
    /// The reason, in a few words.
    pub reason: String,
    /// The number of these pools.
    pub count: u64,
    /// Names of the pools in the order of preference; of very many only the first.
    pub pools: Vec<Name>,
}

/// One pool that comes into question.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// Name of the pool.
    pub pool: Name,
    /// `gives`, `exhausted`, `lacks` or the code of the rejection. The first `gives` is used; `lacks` means
    /// that the pool doesn't have the requested address.
    pub verdict: String,
    /// Reason of the rejection, in a few words.
    pub reason: Option<String>,
    /// Address that the pool would allocate without the pools before it.
    pub address: Option<IpAddr>,
    /// Numbers of the pool's addresses by state.
    pub counts: Counts,
    /// Milliseconds of log time until the cooling of its next address ends.
    pub next_free_ms: Option<u64>,
}

/// Something that would help.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Help {
    /// `wait`, `add-range` or `enable`.
    pub action: String,
    /// Pool that the remedy concerns.
    pub pool: Name,
    /// Time to wait, in milliseconds of log time.
    pub wait_ms: Option<u64>,
    /// Addresses of its subnet that no pool has.
    pub range: Option<AddressRange>,
}
