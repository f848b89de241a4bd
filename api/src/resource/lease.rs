//! Leases of allocations, which end by log time.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// End of a leased allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lease {
    /// TTL from the allocation or the last renewal, in milliseconds of log time.
    pub ttl_ms: u64,
    /// Earliest end. While the cluster has no leader, log time stands still and no lease ends.
    pub ends_at: Timestamp,
}
