//! What a request would get, and why.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Problem;
use crate::address::{AddressRange, Family};
use crate::name::{InterfaceName, Name};
use crate::resource::{Counts, Interface};

/// The answer to `POST /v1/allocations/explain`: what the same request would be answered now, and how that comes about.
/// Nothing is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// `given`, `repeated` (the endpoint has it already) or `refused`.
    pub outcome: String,
    /// What would be given; none if it would be refused.
    pub interfaces: Vec<Interface>,
    /// Why it would be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// For each interface and family, what is chosen from. None where nothing has to be chosen.
    pub choices: Vec<Choice>,
    /// What would help, if it would be refused.
    pub helps: Vec<Help>,
    /// The state that was asked.
    pub revision: u64,
}

/// What an interface chooses from, for one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The interface.
    pub interface: InterfaceName,
    /// The family.
    pub family: Family,
    /// What made pools candidates: `subnets`, `automatic`, `request`, `namespace`, `configuration` or `default`.
    pub came_from: String,
    /// The pools, in the order in which they are tried.
    pub candidates: Vec<Candidate>,
    /// True if there are more than are shown or counted.
    pub more: bool,
    /// Default pools that are not tried, since they are not for the caller, by reason. The first of each is named, and
    /// with `all_skipped=true` the others, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// The pool that would give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<Name>,
    /// The address that it would give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Whether that is what the endpoint has there already and takes along, whichever pool comes first.
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
    /// Their names, in the order in which they would be tried; the first of them, or the first of very many.
    pub pools: Vec<Name>,
}

/// One pool that comes into question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// Its name.
    pub pool: Name,
    /// `gives` (the first of these is the one), `exhausted`, `unavailable` (hasn't the address that is asked for by value) or
    /// the code that it falls with.
    pub verdict: String,
    /// Why it falls, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it would give, had none before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// How its addresses stand.
    pub counts: Counts,
    /// In how many milliseconds of log time its next resting address has rested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_free_ms: Option<u64>,
}

/// Something that would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Help {
    /// `wait`, `add-range` or `enable`.
    pub action: String,
    /// Which pool it is about.
    pub pool: Name,
    /// How long to wait, in milliseconds of log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Addresses of its subnet that no pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<AddressRange>,
}
