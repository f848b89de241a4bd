//! Pods, and the facts by which the servers judge them.

use ipam_api::kubernetes::is_uid;
use ipam_api::limits::LABELS_MAX;
use ipam_api::name::ObjectName;
use ipam_api::resource::{Controller, EndpointKind, Labels};
use ipam_api::time::Timestamp;
use ipam_api::workload::{WorkloadName, WorkloadPhase};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::controller::{KUBEVIRT, MACHINE};
use super::object::{Object, OwnerReference};

/// Pod with the fields of its facts.
pub(crate) type Pods = Object<PodSpec, PodStatus>;

/// Annotations of the mirror pod of a static pod: the uid at the kubelet, and the mark of a mirror pod.
const HASH: &str = "kubernetes.io/config.hash";
const MIRROR: &str = "kubernetes.io/config.mirror";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    node_name: Option<String>,
    host_network: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    phase: Option<String>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<IgnoredAny>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    ephemeral_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    running: Option<IgnoredAny>,
    terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    finished_at: Option<Timestamp>,
}

/// Facts about a pod whose addresses the servers may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodFacts {
    /// Endpoint of the pod, as its agent names it.
    pub(crate) endpoint: WorkloadName,
    /// Uid of the incarnation of the endpoint.
    pub(crate) uid: String,
    pub(crate) phase: WorkloadPhase,
    pub(crate) has_addresses: bool,
    pub(crate) deletion_due_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) node: Option<ObjectName>,
    /// True for a static pod. The end of its object in the API is not its end on the node.
    pub(crate) is_static: bool,
}

/// Report of a pod, without the controllers above its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodReport {
    pub(crate) uid: String,
    pub(crate) endpoint: WorkloadName,
    pub(crate) node: ObjectName,
    pub(crate) labels: Labels,
    pub(crate) owner: Option<Controller>,
}

impl PodFacts {
    /// True if the pod terminates or has ended. All other pods keep their addresses.
    pub(crate) fn is_ending(&self) -> bool {
        let has_ended = matches!(self.phase, WorkloadPhase::Succeeded | WorkloadPhase::Failed);
        has_ended || self.deletion_due_at.is_some()
    }
}

impl Pods {
    /// Facts about the pod; none for a pod on the network of its node, or without valid names.
    pub(crate) fn facts(&self) -> Option<PodFacts> {
        if self.spec.host_network == Some(true) {
            return None;
        }
        let metadata = &self.metadata;
        let owner = metadata.controller().filter(|owner| owner.group() == KUBEVIRT && owner.kind == MACHINE);
        let (kind, name) = match owner {
            Some(machine) => (EndpointKind::Vm, &machine.name),
            None => (EndpointKind::Pod, &metadata.name),
        };
        let (namespace, name) = (ObjectName::new(&metadata.namespace).ok()?, ObjectName::new(name).ok()?);
        let status = &self.status;
        let phase = match status.phase.as_deref() {
            Some("Pending") => WorkloadPhase::Pending,
            Some("Running") => WorkloadPhase::Running,
            Some("Succeeded") => WorkloadPhase::Succeeded,
            Some("Failed") => WorkloadPhase::Failed,
            _ => WorkloadPhase::Unknown,
        };
        let has_ended = matches!(phase, WorkloadPhase::Succeeded | WorkloadPhase::Failed);
        let pod_ip = status.pod_ip.as_ref().is_some_and(|address| !address.is_empty());
        Some(PodFacts {
            endpoint: WorkloadName { kind, namespace, name },
            uid: self.uid()?.to_owned(),
            phase,
            has_addresses: pod_ip || status.pod_ips.as_ref().is_some_and(|all| !all.is_empty()),
            deletion_due_at: metadata.deletion_timestamp,
            finished_at: status.finished_at().filter(|_| has_ended),
            node: self.spec.node_name.as_deref().and_then(|node| ObjectName::new(node).ok()),
            is_static: self.is_static(),
        })
    }

    /// Report of the pod, by which claims of its node are verified; none for a pod without a node.
    pub(crate) fn report(&self) -> Option<PodReport> {
        let PodFacts { endpoint, uid, node, .. } = self.facts()?;
        // The agent has the same limit, and so the same labels.
        let labels = self.metadata.labels.0.iter().take(LABELS_MAX);
        let labels = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
        let owner = self.metadata.controller().and_then(OwnerReference::to_controller);
        Some(PodReport { uid, endpoint, node: node?, labels, owner })
    }

    /// Uid by which the node knows the pod.
    pub(crate) fn uid(&self) -> Option<&str> {
        let hash = self.metadata.annotation(HASH).filter(|hash| self.is_static() && is_uid(hash));
        hash.or(Some(self.metadata.uid.as_str())).filter(|uid| is_uid(uid))
    }

    fn is_static(&self) -> bool {
        self.metadata.annotation(MIRROR).is_some()
    }
}

impl PodStatus {
    /// End of the last container, if the node has reported the end of all.
    fn finished_at(&self) -> Option<Timestamp> {
        let main = || self.container_statuses.iter().flatten();
        let other = self.init_container_statuses.iter().chain(&self.ephemeral_container_statuses).flatten();
        if other.clone().any(|one| one.state.running.is_some()) {
            return None;
        }
        let end = |one: &ContainerStatus| one.state.terminated.as_ref()?.finished_at;
        let ends: Option<Vec<Timestamp>> = main().map(end).collect();
        ends?.into_iter().chain(other.filter_map(end)).max().filter(|_| main().next().is_some())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn facts(metadata: Value, spec: Value, status: Value) -> Option<PodFacts> {
        let mut pod = json!({
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1"}, "spec": spec, "status": status,
        });
        pod["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        serde_json::from_value::<Pods>(pod).unwrap().facts()
    }

    #[test]
    fn a_pod_on_the_network_of_its_node_has_no_facts() {
        assert!(facts(json!({}), json!({"hostNetwork": true}), json!({})).is_none());
        assert!(facts(json!({}), json!({"hostNetwork": false}), json!({})).is_some());
        assert!(facts(json!({"name": "a/b"}), json!({}), json!({})).is_none());
        assert!(facts(json!({"uid": ""}), json!({}), json!({})).is_none());
        assert!(facts(json!({"uid": "x".repeat(129)}), json!({}), json!({})).is_none());
    }

    #[test]
    fn only_pods_that_end_are_judged() {
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:30Z"});
        for (metadata, phase, is_ending) in [
            (json!({}), "pending", false),
            (json!({}), "running", false),
            (json!({}), "unknown", false),
            (json!({}), "succeeded", true),
            (json!({}), "failed", true),
            (deleted.clone(), "running", true),
            (deleted, "pending", true),
        ] {
            let (initial, rest) = phase.split_at(1);
            let status = json!({"phase": initial.to_uppercase() + rest});
            let facts = facts(metadata, json!({}), status).unwrap();
            assert_eq!((facts.is_ending(), json!(facts.phase)), (is_ending, json!(phase)));
        }
        let new = facts(json!({}), json!({}), json!({"phase": "Hibernated"})).unwrap();
        assert_eq!(new.phase, WorkloadPhase::Unknown);
    }

    #[test]
    fn a_pod_has_the_addresses_that_its_status_shows() {
        for (status, has_addresses) in [
            (json!({}), false),
            (json!({"podIP": "", "podIPs": null}), false),
            (json!({"podIPs": []}), false),
            (json!({"podIP": "10.0.0.1"}), true),
            (json!({"podIPs": [{"ip": "10.0.0.1"}]}), true),
        ] {
            let facts = facts(json!({}), json!({}), status.clone()).unwrap();
            assert_eq!(facts.has_addresses, has_addresses, "{status}");
        }
    }

    #[test]
    fn a_pod_has_finished_once_its_node_says_so_for_each_container() {
        let ended = |at: &str| json!({"state": {"terminated": {"finishedAt": at}}});
        let (early, late) = (ended("2026-01-01T00:00:01Z"), ended("2026-01-01T00:00:09Z"));
        let running = json!({"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        let with =
            |list: &str, one: &Value| json!({"phase": "Failed", "containerStatuses": [early], list: [one]});
        for (status, finished) in [
            (json!({"phase": "Failed"}), None),
            (json!({"phase": "Failed", "containerStatuses": null}), None),
            (json!({"phase": "Failed", "containerStatuses": [early, late]}), Some(9)),
            (json!({"phase": "Succeeded", "containerStatuses": [late, early]}), Some(9)),
            (json!({"phase": "Running", "containerStatuses": [early, late]}), None),
            (json!({"phase": "Failed", "containerStatuses": [early, running]}), None),
            (json!({"phase": "Failed", "containerStatuses": [early, {"state": {"waiting": {}}}]}), None),
            (json!({"phase": "Failed", "initContainerStatuses": [early]}), None),
            (with("initContainerStatuses", &running), None),
            (with("ephemeralContainerStatuses", &running), None),
            (with("ephemeralContainerStatuses", &late), Some(9)),
        ] {
            let start = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().0;
            let facts = facts(json!({}), json!({}), status.clone()).unwrap();
            assert_eq!(facts.finished_at.map(|at| (at.0 - start) / 1000), finished, "{status}");
        }
    }

    #[test]
    fn a_pod_is_named_as_its_agent_names_it() {
        let machine = json!([{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
                              "name": "db", "uid": "m1", "controller": true}]);
        for (api, kind) in
            [("kubevirt.io/v1", "Migration"), ("cloud.example/v1", MACHINE), ("apps/v1", "ReplicaSet")]
        {
            let mut owner = machine.clone();
            (owner[0]["apiVersion"], owner[0]["kind"]) = (json!(api), json!(kind));
            let pod = facts(json!({"ownerReferences": owner}), json!({}), json!({})).unwrap();
            assert_eq!(
                (pod.endpoint.kind, pod.endpoint.name.as_str()),
                (EndpointKind::Pod, "web-0"),
                "{api}"
            );
        }
        let launcher = facts(json!({"ownerReferences": machine}), json!({}), json!({})).unwrap();
        assert_eq!((launcher.endpoint.kind, launcher.endpoint.name.as_str()), (EndpointKind::Vm, "db"));
        assert_eq!(launcher.uid, "u1", "the incarnation is that of the pod");
        let mirror = json!({"annotations": {MIRROR: "h", HASH: "h1"}});
        let mirror = facts(mirror, json!({"nodeName": "n1"}), json!({"podIP": "10.0.0.1"})).unwrap();
        assert_eq!((mirror.uid.as_str(), mirror.is_static, mirror.has_addresses), ("h1", true, true));
        assert_eq!(mirror.node, ObjectName::new("n1").ok());
        let long = json!({"annotations": {MIRROR: "h", HASH: "h".repeat(129)}});
        assert_eq!(facts(long, json!({}), json!({})).unwrap().uid, "u1", "no uid");
        let hash = facts(json!({"annotations": {HASH: "h1"}}), json!({}), json!({})).unwrap();
        assert_eq!((hash.uid.as_str(), hash.is_static, hash.has_addresses), ("u1", false, false));
    }
}
