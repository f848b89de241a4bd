//! `[gc]`: garbage collection by the leader.

use ipam_api::limits::{NODE_GRACE_MS_MAX, NODE_GRACE_MS_MIN, WORKLOAD_DELAY_MS_MAX};
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};
use crate::tasks::GcSettings;
use crate::workload::Switches;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileGc {
    /// True if addresses of silent nodes are freed once probes have found them silent.
    pub(super) silent_nodes: Option<bool>,
    /// Log time without a heartbeat after which a node is silent.
    pub(super) node_grace_ms: Option<u64>,
    /// True if addresses of workloads that terminate or have finished on a ready node are freed.
    pub(super) terminating_on_ready_node: Option<bool>,
    /// True if addresses of workloads that terminate or have finished on a node that isn't ready are freed.
    pub(super) terminating_on_gone_node: Option<bool>,
    /// True if addresses of workloads that run but report no addresses are freed.
    pub(super) running_without_addresses: Option<bool>,
    /// Additional grace of workloads that terminate or have finished.
    pub(super) delay_ms: Option<u64>,
}

impl FileGc {
    /// Completes and checks the section.
    pub(super) fn complete(&self) -> Result<GcSettings, ConfigError> {
        let default = GcSettings::default();
        let node_grace_ms = self.node_grace_ms.unwrap_or(default.node_grace_ms);
        if !(NODE_GRACE_MS_MIN..=NODE_GRACE_MS_MAX).contains(&node_grace_ms) {
            let why = format!("it must be between {NODE_GRACE_MS_MIN} and {NODE_GRACE_MS_MAX}");
            return Err(wrong("gc.node_grace_ms", &why));
        }
        let workloads = self.switches();
        if workloads.delay_ms > WORKLOAD_DELAY_MS_MAX {
            return Err(wrong("gc.delay_ms", &format!("it must be at most {WORKLOAD_DELAY_MS_MAX}")));
        }
        Ok(GcSettings {
            silent_nodes: self.silent_nodes.unwrap_or(default.silent_nodes),
            node_grace_ms,
            workloads,
        })
    }

    fn switches(&self) -> Switches {
        let default = Switches::default();
        let or = |given: Option<bool>, default: bool| given.unwrap_or(default);
        Switches {
            terminating_on_ready_node: or(self.terminating_on_ready_node, default.terminating_on_ready_node),
            terminating_on_gone_node: or(self.terminating_on_gone_node, default.terminating_on_gone_node),
            running_without_addresses: or(self.running_without_addresses, default.running_without_addresses),
            delay_ms: self.delay_ms.unwrap_or(default.delay_ms),
        }
    }
}
