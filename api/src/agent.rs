//! Requests of the plugin that only the node's agent serves. All other requests have the paths of the
//! servers, and the headers [`HEADER_NETNS`] and [`HEADER_RUNTIME`].
//!
//! [`HEADER_RUNTIME`]: crate::brand::HEADER_RUNTIME

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::brand::HEADER_NETNS;
use crate::limits::NETNS_PATH_BYTES_MAX;
use crate::name::{InterfaceName, ObjectName};
use crate::resource::EndpointKey;
use crate::{Code, Problem};

/// Path of CNI GC.
pub const GC_PATH: &str = "/v1/gc";
/// Path of the agent's report about itself and its node.
pub const DOCTOR_PATH: &str = "/v1/doctor";
/// Path of the attachments that the agent knows.
pub const ATTACHMENTS_PATH: &str = "/v1/attachments";

/// Path of the comparison of the agent's journal with the cluster.
pub const INVENTORY_PATH: &str = "/v1/inventory";

/// `POST /v1/gc`: the attachments of a network configuration that a runtime still knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcRequest {
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// Runtime that sent the list. Attachments of other runtimes are unaffected.
    pub runtime: String,
    /// All valid attachments.
    pub valid: Vec<ValidAttachment>,
}

/// Attachment that a runtime still knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValidAttachment {
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
}

/// The answer to a GC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Number of attachments that the list lacks.
    pub orphans: u64,
    /// Number of these orphans that are not released yet; the agent continues to release them.
    pub pending: u64,
}

/// `GET /v1/attachments`: the node's attachments, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAttachments {
    /// Number of attachments, undelivered DELs among them.
    pub total: u64,
    /// First attachments, in the order of their keys.
    pub attachments: Vec<NodeAttachment>,
}

/// Attachment of the node.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAttachment {
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
    /// Workload of the container, if known.
    pub endpoint: Option<EndpointKey>,
    /// True if a DEL was answered and is not delivered yet.
    #[serde(default)]
    pub deleting: bool,
}

/// `GET /v1/inventory`: differences between the agent's journal and the cluster.
///
/// A POST resolves each difference in favour of the newer side, and returns the resolved differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryReport {
    /// Number of attachments in the journal, undelivered DELs among them.
    pub attachments: u64,
    /// Differences that no ADD or DEL under way explains.
    pub differences: Vec<InventoryDifference>,
}

/// Attachment that the agent's journal and the cluster have differently.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryDifference {
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
    /// Endpoint of the attachment, if known.
    pub endpoint: Option<EndpointKey>,
    /// Ids of its allocations in the journal; absent if the journal lacks the attachment.
    pub journal: Option<Vec<u64>>,
    /// Ids of its allocations in the cluster; absent if the cluster lacks the attachment.
    pub cluster: Option<Vec<u64>>,
    /// Change of the journal that resolves the difference.
    pub change: InventoryChange,
}

crate::named_enum! {
/// Change of the journal that takes the newer side of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InventoryChange {
    /// The journal takes the attachment with the cluster's allocations.
    TakeCluster = "take-cluster",
    /// The journal keeps an attachment that the cluster doesn't know, since its container may live.
    KeepMissing = "keep-missing",
    /// The journal forgets an attachment that the cluster doesn't know, and that has no known container.
    Forget = "forget",
}
}

/// Network namespace as a process sees it: a path, and the file that it names (namespaces(7)).
///
/// Some runtimes name a namespace by a process (`/proc/PID/ns/net`). The kernel shows that file to privileged
/// processes only, so the start time of the process identifies the namespace: both end with the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Netns {
    /// Device of the file, or [`Netns::PROCESS`].
    pub device: u64,
    /// Inode of the file, or the start time of the process in ticks since boot. A new namespace under the
    /// same path has a different value.
    pub inode: u64,
    /// Absolute path.
    pub path: String,
}

impl Netns {
    /// Device number of a namespace that is identified by its process. No file has this number.
    pub const PROCESS: u64 = 0;

    /// Process that a path names.
    #[must_use]
    pub fn process(path: &str) -> Option<u32> {
        path.strip_prefix("/proc/")?.strip_suffix("/ns/net")?.parse().ok()
    }
}

/// Formats as `device:inode:path`, the value of the request header.
impl fmt::Display for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.device, self.inode, self.path)
    }
}

impl FromStr for Netns {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let (device, inode) = (number(), number());
        let path = parts.next().filter(|path| path.starts_with('/') && path.len() <= NETNS_PATH_BYTES_MAX);
        match (device, inode, path) {
            (Some(device), Some(inode), Some(path)) => Ok(Self { device, inode, path: path.to_owned() }),
            _ => Err(Problem::new(
                Code::InvalidField,
                format!("the header {HEADER_NETNS} must be device:inode:path"),
            )),
        }
    }
}

/// Report of `ipam-agent doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Checks in the order of their importance.
    pub checks: Vec<DoctorCheck>,
}

/// One check of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorCheck {
    /// Subject of the check.
    pub name: String,
    /// Result of the check.
    pub verdict: Verdict,
    /// Observation with names and numbers.
    pub detail: String,
    /// Remedy, unless the verdict is `ok`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No problem found.
    Ok,
    /// Works, with a limitation.
    Warning,
    /// Does not work.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_survives_its_header() {
        let netns = Netns { device: 4, inode: 4_026_532_008, path: "/run/netns/a:b".to_owned() };
        assert_eq!(netns.to_string().parse(), Ok(netns));
        for text in ["", "4:5", "4:5:relative", "x:5:/a", "4:-5:/a", "4::/a"] {
            assert!(text.parse::<Netns>().is_err(), "{text}");
        }
        assert!(format!("1:2:/{}", "x".repeat(NETNS_PATH_BYTES_MAX)).parse::<Netns>().is_err());
    }
}
