//! In which manner addresses are given, and how leases are renewed.

use crate::value::Text;
use crate::value::id::AllocationId;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

/// In which manner addresses are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocateOptions {
    /// Time that they last without being renewed, in log time. Leases have it, and nothing else has.
    pub ttl_ms: Option<u64>,
    /// True if they exist already, and are only recorded.
    pub adopt: bool,
    /// True to wait for them while pools can't give.
    pub wait: bool,
    /// Note on them.
    pub metadata: AllocationMetadata,
}

/// Note on allocations, for people and for programs that read them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationMetadata {
    /// Name of the machine in DNS.
    pub hostname: Option<Text>,
    /// A sentence.
    pub description: Text,
}

/// Let leases last longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// Leases to renew.
    pub which: Leases,
    /// Duration from now, in log time; by default that of each lease before.
    pub ttl_ms: Option<u64>,
}

/// Leases to renew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leases {
    /// Lease of one allocation; a newer one of the same address has another id.
    Allocation(AllocationId),
    /// All of an endpoint, in all its incarnations.
    Endpoint(EndpointKey),
}
