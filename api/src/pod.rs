//! Pods as the watcher of their cluster reports them: claims of nodes must not contradict them.

use serde::{Deserialize, Serialize};

use crate::name::{Name, ObjectName};
use crate::resource::{Controller, Labels};
use crate::workload::WorkloadName;

/// `POST /v1/pods`: pods of a realm that are new, have changed or are gone.
///
/// A repeated report is harmless, so an idempotency key has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PodsReport {
    /// Realm of the pods.
    #[serde(default = "Name::default_name")]
    pub realm: Name,
    /// Pods with a node that are new or have changed, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodIdentity>,
    /// Uids of pods that are gone, at most 1024.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// True if all pods of the realm are reported: claims of its nodes are verified for the next minute.
    #[serde(default)]
    pub complete: bool,
}

/// Identity of a pod that has a node: what its node may claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PodIdentity {
    /// Uid by which the node knows the pod.
    pub uid: String,
    /// Endpoint of the pod, as its node names it: that of the virtual machine for a launcher pod.
    pub endpoint: WorkloadName,
    /// Node of the pod.
    pub node: ObjectName,
    /// Labels of the pod. Pools select by them, whatever the node claims.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Controller of the pod, and those above it, at most three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<Controller>,
}

/// Answer to a report of pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PodsReported {
    /// Revision after the report; unchanged if the report says nothing new.
    pub revision: u64,
}

/// Item of `GET /v1/pods`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportedPod {
    /// Realm of the pod.
    pub realm: Name,
    /// Identity of the pod.
    pub pod: PodIdentity,
}
