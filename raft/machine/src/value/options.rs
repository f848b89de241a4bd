//! Options of allocations, and renewal of leases.

use crate::value::Text;
use crate::value::id::AllocationId;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

/// Options of an allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocateOptions {
    /// TTL of a lease, in log time; none for other lifecycles.
    pub ttl_ms: Option<u64>,
    /// True if they exist already, and are only recorded.
    pub adopt: bool,
    /// True to give a host's incarnation the uid of this request.
    pub take_over: bool,
    /// True to wait while the pools are exhausted.
    pub wait: bool,
    /// Note on them.
    pub metadata: AllocationMetadata,
}

/// Metadata of allocations, for people and programs.
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
