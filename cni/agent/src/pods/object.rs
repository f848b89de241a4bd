//! Pods as the API server sends them, and the part of them that the agent keeps.

use ipam_api::annotations::attachments;
use ipam_api::kubernetes::{UsableLabels, controller, is_uid};
use ipam_api::limits::{INTERFACES_MAX, LABELS_MAX, POD_BYTES_MAX};
use ipam_api::name::ObjectName;
use ipam_api::resource::{Controller, Labels};
use serde::Deserialize;

use crate::journal::{Application, Pod, PodNetwork};
use crate::kubernetes::First;

/// Bytes of a pod's labels that are kept; the rest of its limit is for names and networks.
const LABEL_BYTES_MAX: usize = POD_BYTES_MAX / 2;
/// Maximum number of owner references that are searched for the controller.
const OWNERS_MAX: usize = 64;

/// Object with its metadata. All other fields are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object {
    pub(super) metadata: Metadata,
}

/// Metadata of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    name: String,
    namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    labels: UsableLabels<LABELS_MAX>,
    annotations: Option<Annotations>,
    owner_references: First<OwnerReference, OWNERS_MAX>,
}

/// Annotations that the agent reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "k8s.v1.cni.cncf.io/networks")]
    networks: Option<String>,
    #[serde(rename = "v1.multus-cni.io/default-network")]
    default_network: Option<String>,
    /// Uid by which the kubelet identifies a static pod.
    #[serde(rename = "kubernetes.io/config.mirror")]
    mirror: Option<String>,
    #[serde(rename = "kubernetes.io/config.hash")]
    hash: Option<String>,
}

/// Owner of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: bool,
}

impl Metadata {
    /// Controller that created the object; `None` if the servers would refuse it.
    pub(super) fn owner(&self) -> Option<Controller> {
        let owner = self.owner_references.0.iter().find(|owner| owner.controller)?;
        controller(&owner.api_version, &owner.kind, &owner.name, &owner.uid)
    }
}

impl Object {
    /// Returns the pod; `None` if its names are invalid.
    #[must_use]
    pub fn into_pod(self) -> Option<Pod> {
        let owner = self.metadata.owner();
        let Metadata { name, namespace, uid, labels, annotations, .. } = self.metadata;
        let (name, namespace) = (ObjectName::new(&name).ok()?, ObjectName::new(&namespace).ok()?);
        let Annotations { networks, default_network, mirror, hash } = annotations.unwrap_or_default();
        let networks = attachments(&namespace, default_network.as_deref(), networks.as_deref());
        let networks =
            networks.into_iter().map(|(interface, attachment)| PodNetwork { interface, attachment });
        let networks = networks.take(INTERFACES_MAX).collect();
        let static_uid = mirror.and(hash).filter(|hash| is_uid(hash));
        let labels = fitting(labels.0);
        let pod = Pod { uid, static_uid, namespace, name, labels, owner, application: None, networks };
        is_uid(&pod.uid).then(|| Pod { application: without_reading(&pod), ..pod })
    }
}

/// Application of a pod whose controller has no controller of its own.
fn without_reading(pod: &Pod) -> Option<Application> {
    let owner = pod.owner.as_ref()?;
    let is_read = matches!(
        (owner.group.as_str(), owner.kind.as_str()),
        ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Deployment") | ("batch", "Job")
    );
    (!is_read).then(|| Application { controller: owner.clone(), replicas: None })
}

/// Labels in the order of their keys, as many as fit into a pod's part of the journal.
fn fitting(mut labels: Labels) -> Labels {
    let size = |labels: &Labels| labels.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    while size(&labels) > LABEL_BYTES_MAX {
        labels.pop_last();
    }
    labels
}
