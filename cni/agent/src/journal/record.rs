//! Records of the journal, and the entries that they change.

use std::fmt;

use ipam_api::agent::Netns;
use ipam_api::name::{InterfaceName, ObjectName};
use ipam_api::request::Started;
use ipam_api::resource::EndpointKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pod::{Application, Pod};

/// Identity of an attachment on this node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// `name` of the network configuration.
    pub config: ObjectName,
    /// The container's id.
    pub container_id: ObjectName,
    /// The interface's name.
    pub interface: InterfaceName,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.config, self.container_id, self.interface)
    }
}

/// Attachment of this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Identity of the attachment.
    pub key: Key,
    /// Phase of its lifecycle.
    pub phase: Phase,
    /// Boot of its ADD.
    pub boot_id: String,
    /// Runtime that runs its container; empty if unknown.
    pub runtime: String,
    /// Network namespace of its container, if the agent sees the file that the plugin saw.
    pub netns: Option<Netns>,
    /// Endpoint of its ADD.
    pub endpoint: Option<EndpointKey>,
    /// Uid of the endpoint's incarnation.
    pub uid: Option<String>,
    /// Ids of its allocations, once the cluster has answered.
    pub allocations: Vec<u64>,
}

impl Entry {
    /// Returns true while a DEL waits for its delivery.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        matches!(self.phase, Phase::Deleting { .. })
    }
}

/// Phase of an attachment's lifecycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// An ADD was sent, and its outcome isn't known.
    Adding,
    /// The attachment holds addresses.
    Attached,
    /// The cluster doesn't know the attachment, but its container may live.
    Missing,
    /// A DEL was answered, and isn't delivered yet.
    Deleting {
        /// Body of the request.
        release: Map<String, Value>,
        /// Start of the process that requested it.
        started: Started,
    },
}

/// Change of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Boot of the machine, with its number.
    Boot {
        /// The kernel's id.
        id: String,
        /// Number of the boot, counted from 1.
        number: u64,
    },
    /// Adds or replaces an attachment. No effect before the delivery of its DEL.
    Put(Entry),
    /// The cluster has the attachment with these allocations. No effect after a DEL.
    Attached {
        /// Identity of the attachment.
        key: Key,
        /// Ids of its allocations.
        allocations: Vec<u64>,
    },
    /// The cluster will replace allocations of the attachment; the new ids are unknown until the cluster
    /// reports them. No effect after a DEL.
    Replacing(Key),
    /// The cluster refused the ADD. No effect unless its outcome was unknown; an attachment with allocations
    /// of an earlier ADD keeps them.
    Refused(Key),
    /// The cluster doesn't know the attachment. No effect after a DEL.
    Missing(Key),
    /// A DEL was requested.
    Delete {
        /// Identity of the attachment.
        key: Key,
        /// Body of the request.
        release: Map<String, Value>,
        /// Start of the process that requested it.
        started: Started,
    },
    /// The cluster has executed the DEL. No effect on a newer DEL.
    Delivered {
        /// Identity of the attachment.
        key: Key,
        /// Start of the process that requested it.
        started: Started,
    },
    /// The attachment is released, without a DEL. No effect after a DEL, or if it holds other allocations.
    Gone {
        /// Identity of the attachment.
        key: Key,
        /// Allocations that were released.
        allocations: Vec<u64>,
    },
    /// A runtime runs the container of the attachment. No effect after a DEL, or if its runtime is known.
    Runtime {
        /// Identity of the attachment.
        key: Key,
        /// Name of the runtime.
        runtime: String,
    },
    /// Pods of the node have changed.
    Pods {
        /// New and changed pods.
        put: Vec<Pod>,
        /// Uids of deleted pods.
        gone: Vec<String>,
    },
    /// The application of a pod was read. No effect if the pod is deleted.
    PodApplication {
        /// Uid of the pod.
        uid: String,
        /// Application of the pod.
        application: Application,
    },
}
