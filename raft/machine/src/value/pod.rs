//! Pods as the watcher of their cluster reports them.

use std::collections::BTreeMap;

use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{EndpointKey, EndpointKind};
use serde::{Deserialize, Serialize};

use crate::value::{Controller, Text};

/// Pod that has a node, as its API server shows it. Claims of the node must not contradict it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedPod {
    /// Uid of the pod, by which its node identifies it.
    pub uid: Text,
    /// Endpoint of the pod, as its node names it.
    pub endpoint: EndpointKey,
    pub node: ObjectName,
    pub labels: BTreeMap<Text, Text>,
    /// Controller of the pod, and those above it: at most three.
    pub controllers: Vec<Controller>,
}

/// Report of the pods of a realm: new, changed and deleted ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportPods {
    pub realm: Name,
    pub pods: Vec<ReportedPod>,
    /// Uids of deleted pods.
    pub gone: Vec<Text>,
    /// True if the watcher has reported all pods: claims of nodes are verified from now on.
    pub complete: bool,
}

/// Realm whose pods a watcher has reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedRealm {
    pub realm: Name,
    /// Log time until which claims of the realm's nodes are verified.
    pub until_ms: u64,
}

impl ReportedPod {
    /// Returns true if the endpoint is of a kind that watchers report.
    #[must_use]
    pub fn is_kind(kind: EndpointKind) -> bool {
        matches!(kind, EndpointKind::Pod | EndpointKind::Vm)
    }
}
