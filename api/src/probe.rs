//! Probes of addresses on the wire: settings, jobs of agents and their results, and quarantined addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::access::NodeKey;
use crate::mac::MacAddress;
use crate::name::Name;
use crate::time::Timestamp;

/// Probes that addresses of a network, a subnet or a pool need before an ADD succeeds.
///
/// An absent value is that of the level above: the subnet's for a pool, the network's for a subnet.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Probing {
    /// True if an address is used only after a probe found no other host with it. A network's default is
    /// false.
    pub conflicts: Option<bool>,
    /// True if an ADD fails while the gateway does not answer. A network's default is false.
    pub gateway: Option<bool>,
    /// Validity of a probe that was made ahead of the ADD, in milliseconds of log time. A network's default
    /// is 600,000.
    pub valid_ms: Option<u64>,
}

impl Probing {
    /// True if every setting is inherited from the level above.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Probes that an allocated address needs before it is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeededProbes {
    /// True if the address must be probed for other hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conflicts: bool,
    /// True if the gateway must answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
}

impl NeededProbes {
    /// True if the address needs no probe.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Link that an interface of a node is on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    /// Network whose addresses the link has.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// Addresses of the link.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Cidr"))]
    pub cidr: IpNet,
}

/// `POST /v1/nodes/{realm}/{name}/probes`: results of a node's probes, and a request for further jobs.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbesRequest {
    /// Results, at most 256.
    #[serde(default)]
    pub results: Vec<ProbeResult>,
    /// Maximum number of jobs in the answer, at most 256.
    #[serde(default)]
    pub jobs: u64,
    /// `next` of the answer before, with which the sweep of allocated addresses continues; `0` begins one.
    pub after: Option<String>,
}

/// Position before all subnets, with which a sweep of allocated addresses begins.
pub const SWEEP_BEGINS: &str = "0";

/// Result of the probe of one address.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeResult {
    /// Network of the address.
    #[serde(default = "Name::default_name")]
    pub network: Name,
    /// Address that was probed.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::IpAddress"))]
    pub address: IpAddr,
    /// Stations that answered, at most 2; none: the address is silent.
    #[serde(default)]
    pub macs: Vec<MacAddress>,
    /// Id of the allocation of the node's ADD that waits for this result; none for a job.
    pub allocation: Option<u64>,
}

/// Answer to results of probes.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbesAnswer {
    /// Number of results that changed the state.
    pub recorded: u64,
    /// Number of conflicts that were not recorded, because the node has reported too many that no other
    /// node has confirmed.
    pub refused: u64,
    /// Addresses to probe.
    pub jobs: Vec<ProbeJob>,
    /// Position for `after` of the next request.
    pub next: Option<String>,
    /// Wanted time until the next request, in milliseconds.
    pub wait_ms: u64,
    /// Revision after the request.
    pub revision: u64,
}

/// Address that a node is to probe.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeJob {
    /// Network of the address.
    pub network: Name,
    /// The address.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::IpAddress"))]
    pub address: IpAddr,
}

/// Item of `GET /v1/quarantines`: an address that a foreign host uses, and that is not allocated.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quarantine {
    /// Network of the address.
    pub network: Name,
    /// The address.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::IpAddress"))]
    pub address: IpAddr,
    /// Pool of the address.
    pub pool: Name,
    /// MAC address of the foreign host.
    pub mac: MacAddress,
    /// Node whose agent reported the host.
    pub reported_by: NodeKey,
    /// Node whose agent confirmed the report, if one did.
    pub confirmed_by: Option<NodeKey>,
    /// Time of the report.
    pub since: Timestamp,
    /// Time of the newest answer of the host.
    pub heard_at: Timestamp,
}
