//! Leases: what ends by log time.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// When an allocation ends unless it is renewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lease {
    /// How long it lasts from when it was given or last renewed, in log time.
    pub ttl_ms: u64,
    /// When it ends at the earliest: while the cluster has no leader, log time stands still and no lease ends.
    pub ends_at: Timestamp,
}
