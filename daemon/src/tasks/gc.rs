//! Settings of garbage collection.

use ipam_api::limits::NODE_GRACE_MS_DEFAULT;

use crate::workload::Switches;

/// Settings of the tasks that free addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcSettings {
    /// True if addresses of silent nodes are freed once probes have found them silent.
    pub silent_nodes: bool,
    /// Log time without a heartbeat after which a node is silent.
    pub node_grace_ms: u64,
    /// Switches for workloads that their orchestrator reports.
    pub workloads: Switches,
}

impl Default for GcSettings {
    fn default() -> Self {
        Self { silent_nodes: true, node_grace_ms: NODE_GRACE_MS_DEFAULT, workloads: Switches::default() }
    }
}
