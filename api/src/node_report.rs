//! Reports of a node's agent: heartbeats, its inventory of attachments, and orphans.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::name::{InterfaceName, Name, ObjectName};
use crate::probe::Link;
use crate::request::AttachmentKey;
use crate::resource::EndpointKey;
use crate::time::Timestamp;

/// `POST /v1/nodes/{realm}/{name}/heartbeat`: readiness, present boot and inventory of a node.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatRequest {
    /// `/proc/sys/kernel/random/boot_id` of the node.
    pub boot_id: String,
    /// Number of this boot, counted by the agent's journal from 1. Later boots have larger numbers.
    pub boot_number: u64,
    /// True if the node can serve ADD.
    pub ready: bool,
    /// Reason if it can't.
    pub problem: Option<AgentProblem>,
    /// Version of the agent: at most 64 of `0-9A-Za-z.+-`.
    pub agent_version: String,
    /// Inventory according to the agent's journal.
    pub inventory: InventoryDigest,
    /// Links of the node's interfaces that its agent can probe, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// Reason of a node that can't serve ADD. New ones are only ever appended: rows carry them by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AgentProblem {
    /// The agent can't write its journal.
    JournalUnwritable,
    /// The agent can't serve its socket.
    SocketUnavailable,
}

impl AgentProblem {
    /// Name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JournalUnwritable => "journal-unwritable",
            Self::SocketUnavailable => "socket-unavailable",
        }
    }
}

/// Count and digest of a node's attachments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InventoryDigest {
    /// Number of attachments.
    pub attachments: u64,
    /// Digest of the attachments and their allocation ids: 16 hexadecimal digits.
    pub digest: String,
}

/// Answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeartbeatAnswer {
    /// Number of the node's present boot on the cluster.
    pub boot_number: u64,
    /// The node's present boot on the cluster. If it isn't the request's, the heartbeat changed nothing: it
    /// was late, or the agent must count on from `boot_number`.
    pub boot_id: String,
    /// True if the inventory of the request is the cluster's.
    pub inventory_matches: bool,
    /// Wanted time until the next heartbeat, in milliseconds.
    pub interval_ms: u64,
    /// True if the node is a prober of one of its links, and is to request probes.
    #[serde(default)]
    pub has_probes: bool,
    /// Revision after the heartbeat.
    pub revision: u64,
}

/// `POST /v1/nodes/{realm}/{name}/orphans`: attachments without a container, to be released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrphansRequest {
    /// Orphans of the node, at most 1024.
    pub orphans: Vec<Orphan>,
}

/// Attachment of the node whose container is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Orphan {
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
    /// Ids of the allocations that the agent observed on it. Nothing is released if the attachment holds
    /// another one.
    pub allocations: Vec<u64>,
    /// Evidence that the container is gone.
    pub evidence: OrphanEvidence,
}

/// Evidence that the container of an attachment is gone. New ones are only ever appended: log entries carry
/// them by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OrphanEvidence {
    /// Its network namespace doesn't exist any more.
    NetnsGone,
    /// It began in an earlier boot of the node.
    EarlierBoot,
    /// The runtime's CNI GC didn't list it among the valid ones.
    NotInGcList,
}

impl OrphanEvidence {
    /// Name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NetnsGone => "netns-gone",
            Self::EarlierBoot => "earlier-boot",
            Self::NotInGcList => "not-in-gc-list",
        }
    }
}

/// Answer to a report of orphans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrphansReleased {
    /// Released addresses. Kept and shared ones are only detached, and not among them.
    pub addresses: Vec<IpAddr>,
    /// Number of orphans that were left alone: the attachment is gone, or holds an allocation that the agent
    /// did not observe.
    pub stale: u64,
    /// Revision after the request.
    pub revision: u64,
}

/// Item of `GET /v1/nodes/{realm}/{name}/attachments`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeAttachment {
    /// Attachment on the node.
    pub attachment: AttachmentKey,
    /// Boot of the ADD that it belongs to.
    pub started_boot_id: String,
    /// Endpoint that it belongs to.
    pub endpoint: EndpointKey,
    /// Uid of the endpoint's incarnation, if it has one.
    pub uid: Option<String>,
    /// Ids of its allocations, oldest first.
    pub allocations: Vec<u64>,
}

/// `GET /v1/nodes/{realm}/{name}/agent`, and part of a node's status: the newest report of its agent.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeAgent {
    /// Kernel's id of the node's present boot.
    pub boot_id: String,
    /// Number of that boot. Later boots have larger numbers.
    pub boot_number: u64,
    /// True if the node can serve ADD, according to its newest heartbeat.
    pub ready: bool,
    /// Reason if it can't.
    pub problem: Option<AgentProblem>,
    /// Time of the last change of the readiness.
    pub since: Timestamp,
    /// Version of the agent.
    pub agent_version: String,
    /// Time of the newest heartbeat.
    pub heard_at: Timestamp,
    /// Attachments of the node on the cluster.
    pub attachments: u64,
    /// Attachments in the agent's journal, according to its newest heartbeat.
    pub reported_attachments: u64,
    /// False if the agent's inventory differed from the cluster's at its newest heartbeat, and differs now.
    /// The agent follows the cluster after two such heartbeats.
    pub inventory_matches: bool,
}

/// Item of `GET /v1/agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentReport {
    /// Realm of the node.
    pub realm: Name,
    /// Name of the node. It needs no resource of its own.
    pub node: ObjectName,
    /// Newest report of its agent.
    pub agent: NodeAgent,
}

/// Inventory of a node as a sum, updated for each added or removed attachment.
///
/// The agent and the cluster compute it alike. Outcomes of log entries carry its fields by position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    attachments: u64,
    sum: u64,
}

impl Inventory {
    /// Parses a digest; `None` unless it has 16 hexadecimal digits in lower case.
    #[must_use]
    pub fn of(digest: &InventoryDigest) -> Option<Self> {
        let InventoryDigest { attachments, digest } = digest;
        let is_lower = digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let sum = u64::from_str_radix(digest, 16).ok().filter(|_| is_lower && digest.len() == 16)?;
        Some(Self { attachments: *attachments, sum })
    }

    /// Adds an attachment with the ids of its allocations, in any order.
    pub fn add(&mut self, attachment: &AttachmentKey, allocations: impl IntoIterator<Item = u64>) {
        self.attachments = self.attachments.wrapping_add(1);
        self.sum = self.sum.wrapping_add(sum(attachment, allocations));
    }

    /// Removes an attachment, with the allocations with which it was added.
    pub fn remove(&mut self, attachment: &AttachmentKey, allocations: impl IntoIterator<Item = u64>) {
        self.attachments = self.attachments.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(sum(attachment, allocations));
    }

    /// Number of attachments.
    #[must_use]
    pub fn attachments(&self) -> u64 {
        self.attachments
    }

    /// Returns the inventory as it is sent.
    #[must_use]
    pub fn digest(&self) -> InventoryDigest {
        InventoryDigest { attachments: self.attachments, digest: format!("{:016x}", self.sum) }
    }
}

/// Sum of the hashes of an attachment and of each of its allocations.
fn sum(attachment: &AttachmentKey, allocations: impl IntoIterator<Item = u64>) -> u64 {
    let AttachmentKey { realm: _, node: _, config, container_id, interface } = attachment;
    let name = [config.as_str(), container_id.as_str(), interface.as_str()].iter().fold(FNV_OFFSET, fnv1a);
    let pairs = allocations.into_iter().map(|id| splitmix64(name ^ splitmix64(id)));
    pairs.fold(splitmix64(name), u64::wrapping_add)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Continues a hash with a name and a byte that no name contains (FNV-1a).
fn fnv1a(hash: u64, name: &&str) -> u64 {
    let bytes = name.bytes().chain([0xff]);
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Mixes a number so that sums of mixed numbers tell sets apart (splitmix64).
fn splitmix64(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(container: &str) -> AttachmentKey {
        AttachmentKey {
            realm: Name::default_name(),
            node: "node-1".parse().unwrap(),
            config: "net".parse().unwrap(),
            container_id: container.parse().unwrap(),
            interface: "eth0".parse().unwrap(),
        }
    }

    #[test]
    fn an_inventory_depends_on_its_attachments_and_not_on_their_order() {
        let (mut one, mut other) = (Inventory::default(), Inventory::default());
        one.add(&attachment("a"), [7, 8]);
        one.add(&attachment("b"), [9]);
        other.add(&attachment("b"), [9]);
        other.add(&attachment("c"), []);
        other.add(&attachment("a"), [8, 7]);
        assert_ne!(one.digest(), other.digest(), "it has another attachment");
        other.remove(&attachment("c"), []);
        assert_eq!(one.digest(), other.digest());
        let mut moved = Inventory::default();
        moved.add(&attachment("a"), [7]);
        moved.add(&attachment("b"), [8, 9]);
        assert_ne!(one.digest(), moved.digest(), "an allocation has moved between containers");
    }

    #[test]
    fn the_digest_is_the_same_in_every_version() {
        let mut inventory = Inventory::default();
        assert_eq!(inventory.digest().digest, "0000000000000000");
        inventory.add(&attachment("a"), [7]);
        let InventoryDigest { attachments, digest } = inventory.digest();
        assert_eq!((attachments, digest.as_str()), (1, "3a469102a8e95030"));
    }

    #[test]
    fn an_inventory_is_read_from_its_digest_and_from_no_other_text() {
        let mut inventory = Inventory::default();
        inventory.add(&attachment("a"), [7]);
        assert_eq!(Inventory::of(&inventory.digest()), Some(inventory));
        for odd in ["", "3a469102a8e9503", "03a469102a8e95030", "3A469102A8E95030", "+a469102a8e95030"] {
            let digest = InventoryDigest { attachments: 1, digest: odd.to_owned() };
            assert_eq!(Inventory::of(&digest), None, "{odd}");
        }
    }
}
