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
    /// True if the addresses are in use already, and are only recorded.
    pub adopt: bool,
    /// True to assign the uid of this request to the incarnation of a host.
    pub take_over: bool,
    /// True to wait while the pools are exhausted.
    pub wait: bool,
    /// Metadata of the allocations.
    pub metadata: AllocationMetadata,
}

/// Metadata of allocations, for people and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationMetadata {
    /// Name of the machine in DNS.
    pub hostname: Option<Text>,
    /// Description of the allocation.
    pub description: Text,
}

/// Renewal of leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// Leases to renew.
    pub which: Leases,
    /// Duration from now, in log time; by default the present TTL of each lease.
    pub ttl_ms: Option<u64>,
}

/// Leases to renew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Leases {
    /// Lease of one allocation; a newer one of the same address has another id.
    Allocation(AllocationId),
    /// All leases of an endpoint, in all its incarnations.
    Endpoint(EndpointKey),
}
