//! Controllers: the desired number of replicas of each.

use ipam_api::kubernetes::is_uid;
use ipam_api::name::ObjectName;
use ipam_api::resource::Controller;
use kube::core::ApiResource;
use serde::Deserialize;

use super::object::{Object, OwnerReference, resource};

/// Controller with the fields of its scale.
pub(crate) type Controllers = Object<ControllerSpec, ControllerStatus>;

/// API group of KubeVirt.
pub(crate) const KUBEVIRT: &str = "kubevirt.io";
/// Kind of a virtual machine that runs. Its launcher pods name it as their controller.
pub(crate) const MACHINE: &str = "VirtualMachineInstance";
/// Kind of a virtual machine, which may be stopped. Its instance has the same name.
pub(crate) const VM: &str = "VirtualMachine";

/// Watched kind of controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Machine,
    Vm,
}

impl Kind {
    /// Built-in kinds.
    pub(crate) const BUILT_IN: [Self; 6] =
        [Self::Deployment, Self::ReplicaSet, Self::StatefulSet, Self::DaemonSet, Self::Job, Self::CronJob];
    /// Kinds of KubeVirt, which a cluster may have.
    pub(crate) const OF_KUBEVIRT: [Self; 2] = [Self::Machine, Self::Vm];

    /// Group, kind and plural.
    pub(crate) fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Deployment => ("apps", "Deployment", "deployments"),
            Self::ReplicaSet => ("apps", "ReplicaSet", "replicasets"),
            Self::StatefulSet => ("apps", "StatefulSet", "statefulsets"),
            Self::DaemonSet => ("apps", "DaemonSet", "daemonsets"),
            Self::Job => ("batch", "Job", "jobs"),
            Self::CronJob => ("batch", "CronJob", "cronjobs"),
            Self::Machine => (KUBEVIRT, MACHINE, "virtualmachineinstances"),
            Self::Vm => (KUBEVIRT, VM, "virtualmachines"),
        }
    }

    /// Kind with these names.
    pub(crate) fn of(group: &str, kind: &str) -> Option<Self> {
        let mut all = Self::BUILT_IN.into_iter().chain(Self::OF_KUBEVIRT);
        all.find(|one| one.names().0 == group && one.names().1 == kind)
    }

    pub(crate) fn resource(self) -> ApiResource {
        let (group, kind, plural) = self.names();
        resource(group, kind, plural)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ControllerSpec {
    replicas: Option<u32>,
    ordinals: Option<Ordinals>,
    parallelism: Option<u32>,
    job_template: Option<JobTemplate>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Ordinals {
    start: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    spec: JobSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    parallelism: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ControllerStatus {
    desired_number_scheduled: Option<u32>,
    observed_generation: i64,
}

/// Part of a controller that the watcher keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) uid: String,
    /// Desired replicas and the first ordinal; none if unknown, or if this kind has no fixed number.
    pub(crate) wanted: Option<(u32, u32)>,
    /// Controller of the controller.
    pub(crate) owner: Option<Controller>,
}

impl Scale {
    /// Returns true if agents name the controller of this one instead: the Deployment of a ReplicaSet, the
    /// CronJob of a Job.
    pub(crate) fn is_inner(&self, kind: Kind) -> bool {
        self.owner.is_some() && matches!(kind, Kind::ReplicaSet | Kind::Job)
    }
}

impl Controllers {
    /// Namespace, name and scale of the controller.
    pub(crate) fn facts(self, kind: Kind) -> Option<((ObjectName, ObjectName), Scale)> {
        let name =
            (ObjectName::new(&self.metadata.namespace).ok()?, ObjectName::new(&self.metadata.name).ok()?);
        let wanted = self.wanted(kind);
        let owner = self.metadata.controller().and_then(OwnerReference::to_controller);
        Some((name, Scale { uid: Some(self.metadata.uid).filter(|uid| is_uid(uid))?, wanted, owner }))
    }

    fn wanted(&self, kind: Kind) -> Option<(u32, u32)> {
        let spec = &self.spec;
        let replicas = match kind {
            // The defaults of the API server.
            Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet => spec.replicas.unwrap_or(1),
            Kind::Job => spec.parallelism.unwrap_or(1),
            Kind::CronJob => spec.job_template.as_ref().and_then(|job| job.spec.parallelism).unwrap_or(1),
            // Until its controller has observed the present generation, the status has the former number of
            // nodes.
            Kind::DaemonSet if self.status.observed_generation < self.metadata.generation => return None,
            Kind::DaemonSet => self.status.desired_number_scheduled?,
            Kind::Machine | Kind::Vm => return None,
        };
        let start = spec.ordinals.as_ref().filter(|_| kind == Kind::StatefulSet);
        Some((replicas, start.map_or(0, |ordinals| ordinals.start)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wanted(kind: Kind, object: Value) -> Option<Option<(u32, u32)>> {
        let mut whole =
            json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 2}});
        for (key, value) in object.as_object().unwrap() {
            match key.as_str() {
                "ownerReferences" => whole["metadata"][key] = value.clone(),
                _ => whole[key] = value.clone(),
            }
        }
        let read = serde_json::from_value::<Controllers>(whole).unwrap();
        read.facts(kind).filter(|(_, scale)| !scale.is_inner(kind)).map(|(_, scale)| scale.wanted)
    }

    #[test]
    fn each_kind_has_its_number_of_replicas() {
        let job = json!({"jobTemplate": {"spec": {"parallelism": 4}}});
        let status = |generation: i64| json!({"desiredNumberScheduled": 5, "observedGeneration": generation});
        let owned = json!([{"kind": "Deployment", "name": "web", "controller": true}]);
        for (kind, object, expected) in [
            (Kind::Deployment, json!({"spec": {"replicas": 3}}), Some(Some((3, 0)))),
            (Kind::Deployment, json!({"spec": {"replicas": 0}}), Some(Some((0, 0)))),
            (Kind::Deployment, json!({"spec": {"ordinals": {"start": 3}}}), Some(Some((1, 0)))),
            (
                Kind::StatefulSet,
                json!({"spec": {"replicas": 2, "ordinals": {"start": 3}}}),
                Some(Some((2, 3))),
            ),
            (Kind::DaemonSet, json!({"status": status(2)}), Some(Some((5, 0)))),
            (Kind::DaemonSet, json!({"status": status(1)}), Some(None)),
            (Kind::DaemonSet, json!({}), Some(None)),
            (Kind::Job, json!({"spec": {"parallelism": 2, "completions": 9}}), Some(Some((2, 0)))),
            (Kind::CronJob, json!({"spec": job}), Some(Some((4, 0)))),
            (Kind::Vm, json!({"spec": {"running": true}}), Some(None)),
            (Kind::ReplicaSet, json!({"spec": {"replicas": 2}}), Some(Some((2, 0)))),
            (Kind::ReplicaSet, json!({"spec": {"replicas": 2}, "ownerReferences": owned}), None),
        ] {
            assert_eq!(wanted(kind, object.clone()), expected, "{kind:?} {object}");
        }
        assert_eq!(Kind::of("apps", "StatefulSet"), Some(Kind::StatefulSet));
        assert_eq!(Kind::of("example.com", "StatefulSet"), None);
    }
}
