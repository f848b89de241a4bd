//! Workloads that no longer exist, as the log carries them.

use crate::value::Text;
use crate::value::id::AllocationId;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};

/// End of an incarnation whose workload no longer exists, as its orchestrator observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndIncarnation {
    pub endpoint: EndpointKey,
    /// Uid of the workload. Another incarnation of the endpoint is not affected.
    pub uid: Text,
    /// Ids of the attached allocations that the caller observed.
    pub allocations: Vec<AllocationId>,
}
