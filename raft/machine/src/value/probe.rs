//! Probes of addresses on the wire, as the log carries them: settings, links and results.

use std::net::IpAddr;

use ipam_api::access::NodeKey;
use ipam_api::limits::PROBE_VALID_MS_DEFAULT;
use ipam_api::mac::MacAddress;
use ipam_api::name::Name;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::id::AllocationId;

/// Probes that addresses need. An absent value is that of the level above: subnet, network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probing {
    /// True if an address is probed for other hosts before it is used.
    pub conflicts: Option<bool>,
    /// True if the gateway must answer.
    pub gateway: Option<bool>,
    /// Validity of a probe ahead of a request, in log time.
    pub valid_ms: Option<u64>,
}

impl Probing {
    /// Returns the present values, and for absent ones those of the level above.
    pub(crate) fn or(self, above: Self) -> Self {
        Self {
            conflicts: self.conflicts.or(above.conflicts),
            gateway: self.gateway.or(above.gateway),
            valid_ms: self.valid_ms.or(above.valid_ms),
        }
    }

    pub(crate) fn conflicts(self) -> bool {
        self.conflicts.unwrap_or(false)
    }

    pub(crate) fn gateway(self) -> bool {
        self.gateway.unwrap_or(false)
    }

    pub(crate) fn valid_ms(self) -> u64 {
        self.valid_ms.unwrap_or(PROBE_VALID_MS_DEFAULT)
    }
}

/// Link of a node's interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    pub network: Name,
    /// Addresses of the link, without host bits.
    pub cidr: IpNet,
}

/// Results of a node's probes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportProbes {
    pub node: NodeKey,
    pub results: Vec<ProbeResult>,
}

/// Result of the probe of one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub network: Name,
    pub address: IpAddr,
    /// Stations that answered; none: the address is silent.
    pub macs: Vec<MacAddress>,
    /// The allocation whose ADD waits for the result; none for a job.
    pub allocation: Option<AllocationId>,
}

/// End of a quarantine by an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndQuarantine {
    pub network: Name,
    pub address: IpAddr,
}

/// Release of attached allocations whose node is silent or no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaim {
    pub node: NodeKey,
    pub reason: ReclaimReason,
    /// Ids of the allocations that the caller observed.
    pub allocations: Vec<AllocationId>,
}

/// Reason of a reclaim. Variants are only ever appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReclaimReason {
    /// The orchestrator or an operator states that the node no longer exists.
    NodeGone,
    /// The node is silent, and probers have found the addresses silent for several rounds.
    NodeSilent {
        /// Time without a heartbeat after which a node is silent, in log time.
        grace_ms: u64,
    },
}
