//! Reports of nodes' agents, as the log carries them.

use crate::value::id::AllocationId;
use crate::value::{Link, Text};
use ipam_api::access::NodeKey;
use ipam_api::name::{InterfaceName, ObjectName};
use ipam_api::node_report::{AgentProblem, Inventory, OrphanEvidence};
use ipam_api::request::AttachmentKey;
use serde::{Deserialize, Serialize};

/// Heartbeat of a node's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub node: NodeKey,
    /// Boot of the node.
    pub boot: ReportedBoot,
    pub readiness: AgentReadiness,
    pub agent_version: Text,
    /// Links that the agent can probe.
    pub links: Vec<Link>,
    /// Attachments in the agent's journal.
    pub inventory: Inventory,
}

/// Boot of a node, as its agent reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedBoot {
    /// The kernel's id of the boot.
    pub id: Text,
    /// Number of the boot. Later boots have larger numbers.
    pub number: u64,
}

/// Readiness of a node to serve ADD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReadiness {
    pub ready: bool,
    /// Reason if it isn't ready.
    pub problem: Option<AgentProblem>,
}

/// Attachments of a node whose containers no longer exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseOrphans {
    pub node: NodeKey,
    pub orphans: Vec<Orphan>,
}

/// Attachment whose container no longer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// `name` of the network configuration.
    pub config: ObjectName,
    pub container_id: ObjectName,
    pub interface: InterfaceName,
    /// Ids of the attachment's allocations that the agent observed.
    pub allocations: Vec<AllocationId>,
    pub evidence: OrphanEvidence,
}

impl Orphan {
    /// Key of the attachment on its node.
    #[must_use]
    pub fn key(&self, node: &NodeKey) -> AttachmentKey {
        AttachmentKey {
            realm: node.realm.clone(),
            node: node.name.clone(),
            config: self.config.clone(),
            container_id: self.container_id.clone(),
            interface: self.interface.clone(),
        }
    }
}
