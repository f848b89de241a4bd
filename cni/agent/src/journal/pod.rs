//! Pods of the node, as the API server describes them.
//!
//! Pods only complete the requests of ADDs: an attachment without its pod in the journal is as valid as any
//! other.

use std::collections::BTreeMap;

use ipam_api::limits::{POD_BYTES_MAX, PODS_BYTES_MAX, PODS_PER_NODE_MAX};
use ipam_api::name::{InterfaceName, NetworkAttachment, ObjectName};
use ipam_api::resource::{Controller, Labels};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// API group of KubeVirt.
const KUBEVIRT: &str = "kubevirt.io";
/// Kind of a running machine of KubeVirt, which controls its launcher pods.
const MACHINE: &str = "VirtualMachineInstance";

/// Pod of this node.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Uid of the object.
    pub uid: String,
    /// Uid by which the kubelet identifies a static pod; its object has another uid.
    pub static_uid: Option<String>,
    /// Namespace of the pod.
    pub namespace: ObjectName,
    /// Name of the pod.
    pub name: ObjectName,
    /// Labels by which pools can select.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Controller that created it.
    pub owner: Option<Controller>,
    /// Application of the pod, once it was read; for a Deployment's pod, the Deployment.
    pub application: Option<Application>,
    /// Networks of its annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<PodNetwork>,
}

/// Application of a pod.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// Controller of the application.
    pub controller: Controller,
    /// Desired number of replicas, if known.
    pub replicas: Option<u32>,
}

/// Interface of a pod, and the network attachment that creates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNetwork {
    /// Name of the interface.
    pub interface: InterfaceName,
    /// Attachment as `namespace/name`.
    pub attachment: NetworkAttachment,
}

impl Pod {
    /// Returns true if a runtime identifies this pod by the uid.
    #[must_use]
    pub fn has_uid(&self, uid: &str) -> bool {
        self.uid == uid || self.static_uid.as_deref() == Some(uid)
    }

    /// Virtual machine that runs in the pod.
    #[must_use]
    pub fn machine(&self) -> Option<&Controller> {
        self.owner.as_ref().filter(|owner| owner.group == KUBEVIRT && owner.kind == MACHINE)
    }

    /// Bytes of the pod's strings.
    fn bytes(&self) -> usize {
        let controller = |one: &Controller| {
            one.group.len()
                + one.kind.len()
                + one.name.as_str().len()
                + one.uid.as_ref().map_or(0, String::len)
        };
        let controllers = self.owner.iter().chain(self.application.iter().map(|one| &one.controller));
        let labels = self.labels.iter().map(|(key, value)| key.len() + value.len());
        let networks =
            self.networks.iter().map(|one| one.interface.as_str().len() + one.attachment.as_str().len());
        let names = self.namespace.as_str().len() + self.name.as_str().len() + self.uid.len();
        names
            + self.static_uid.as_ref().map_or(0, String::len)
            + controllers.map(controller).sum::<usize>()
            + labels.sum::<usize>()
            + networks.sum::<usize>()
    }
}

/// Pods of the node by uid, within the limits of number and size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pods {
    pods: BTreeMap<String, Pod>,
    bytes: usize,
}

impl Pods {
    /// Pod with this uid of the object.
    #[must_use]
    pub fn get(&self, uid: &str) -> Option<&Pod> {
        self.pods.get(uid)
    }

    /// All pods in the order of their uids.
    pub fn iter(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values()
    }

    /// Number of pods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Returns true without any pod.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Adds or replaces a pod; no effect beyond the limits.
    pub(super) fn put(&mut self, pod: Pod) {
        let before = self.pods.get(&pod.uid).map_or(0, Pod::bytes);
        let bytes = self.bytes - before + pod.bytes();
        let is_full = before == 0 && self.pods.len() >= PODS_PER_NODE_MAX;
        if !is_full && pod.bytes() <= POD_BYTES_MAX && bytes <= PODS_BYTES_MAX {
            self.bytes = bytes;
            self.pods.insert(pod.uid.clone(), pod);
        }
    }

    pub(super) fn remove(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.bytes -= pod.bytes();
        }
    }

    pub(super) fn resolve(&mut self, uid: &str, application: Application) {
        if let Some(pod) = self.pods.get(uid).cloned() {
            self.put(Pod { application: Some(application), ..pod });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, label_bytes: usize) -> Pod {
        let label = ("a".to_owned(), "x".repeat(label_bytes));
        Pod {
            uid: uid.to_owned(),
            static_uid: None,
            namespace: "shop".parse().unwrap(),
            name: "web-0".parse().unwrap(),
            labels: [label].into(),
            owner: None,
            application: None,
            networks: Vec::new(),
        }
    }

    #[test]
    fn number_and_size_of_pods_are_bounded() {
        let mut pods = Pods::default();
        pods.put(pod("large", POD_BYTES_MAX));
        assert!(pods.is_empty());
        for number in 0..PODS_PER_NODE_MAX + 10 {
            pods.put(pod(&number.to_string(), 1));
        }
        assert_eq!(pods.len(), PODS_PER_NODE_MAX);
        // A known pod is replaced even at the limit.
        pods.put(pod("0", 2));
        assert_eq!(pods.get("0").unwrap().labels["a"], "xx");
        let mut pods = Pods::default();
        for number in 0..PODS_PER_NODE_MAX {
            pods.put(pod(&number.to_string(), POD_BYTES_MAX / 2));
        }
        let kept = pods.len();
        assert!(kept > 1 && kept < PODS_PER_NODE_MAX && pods.bytes <= PODS_BYTES_MAX, "{kept}");
        pods.remove("0");
        pods.put(pod("new", POD_BYTES_MAX / 2));
        assert!(pods.get("new").is_some() && pods.get("0").is_none());
        for uid in pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>() {
            pods.remove(&uid);
        }
        assert_eq!(pods, Pods::default());
    }
}
