//! In which manner addresses are given, and how leases are renewed.

use crate::value::Text;
use crate::value::id::AllocationId;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

/// In which manner addresses are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manner {
    /// How long they last without being renewed, in log time. Leases say it, and nothing else does.
    pub ttl_ms: Option<u64>,
    /// Whether they exist already, and are only recorded.
    pub adopt: bool,
    /// Whether to wait for them while pools can't give.
    pub wait: bool,
    /// What is written on them.
    pub note: Note,
}

/// What is written on allocations, for people and for what feeds on them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What the machine calls itself in DNS.
    pub hostname: Option<Text>,
    /// A sentence.
    pub description: Text,
}

/// Let leases last longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// Which leases.
    pub which: Leases,
    /// How long from now, in log time; as long as each was to last before, if nothing is said.
    pub ttl_ms: Option<u64>,
}

/// Which leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leases {
    /// That of one allocation; a newer one of the same address has another id.
    Allocation(AllocationId),
    /// All of an endpoint, in all its incarnations.
    Endpoint(EndpointKey),
}
