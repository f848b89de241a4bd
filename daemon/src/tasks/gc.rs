//! Settings of garbage collection.

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
