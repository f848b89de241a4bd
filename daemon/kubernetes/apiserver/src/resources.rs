//! Resources that the server knows.

use std::sync::Arc;

use serde_json::Value;

use crate::custom::{Custom, versions};
use crate::store::{Key, Store};

/// Resource of an API group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Group; empty for the core group.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Name in paths.
    pub plural: String,
    /// Kind of its objects.
    pub kind: String,
    /// True if its objects are in namespaces.
    pub is_namespaced: bool,
}

impl Resource {
    /// Value of `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Resource with the version of its definition, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: Resource,
    pub(crate) custom: Option<Arc<Custom>>,
}

impl Served {
    /// Returns true if objects have this subresource.
    pub(crate) fn has(&self, subresource: &str) -> bool {
        let plural = self.resource.plural.as_str();
        match (&self.custom, subresource) {
            (Some(custom), _) => custom.has(subresource),
            (None, "status") => !STATELESS.contains(&plural),
            (None, "scale") => {
                self.resource.group == "apps"
                    && ["deployments", "replicasets", "statefulsets"].contains(&plural)
            }
            _ => false,
        }
    }

    /// Groups of resources that clients list together.
    pub(crate) fn categories(&self) -> Vec<String> {
        let workloads = [
            "pods",
            "services",
            "deployments",
            "replicasets",
            "statefulsets",
            "daemonsets",
            "jobs",
            "cronjobs",
        ];
        match &self.custom {
            Some(custom) => texts(&custom.names["categories"]),
            None if workloads.contains(&self.resource.plural.as_str()) => vec!["all".to_owned()],
            None => Vec::new(),
        }
    }

    /// Short names.
    pub(crate) fn short_names(&self) -> Vec<String> {
        let short =
            |plural: &str| SHORT_NAMES.iter().find(|(one, _)| *one == plural).map(|(_, short)| *short);
        match &self.custom {
            Some(custom) => texts(&custom.names["shortNames"]),
            None => short(&self.resource.plural).into_iter().map(str::to_owned).collect(),
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Built-in resources, and those of the present definitions.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) all: Vec<Served>,
}

impl Registry {
    /// Resources of a new server.
    pub(crate) fn built_in() -> Self {
        let resource =
            |(group, version, plural, kind, is_namespaced): (&str, &str, &str, &str, bool)| Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                plural: plural.to_owned(),
                kind: kind.to_owned(),
                is_namespaced,
            };
        let mut registry = Self::default();
        BUILT_IN.map(resource).into_iter().for_each(|resource| registry.add(resource));
        registry
    }

    pub(crate) fn add(&mut self, resource: Resource) {
        self.all.push(Served { resource, custom: None });
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Served> {
        let is_it = |one: &Resource| one.group == group && one.version == version && one.plural == plural;
        self.all.iter().find(|served| is_it(&served.resource))
    }

    /// Served version of the definition of an object.
    pub(crate) fn custom(&self, key: &Key) -> Option<Arc<Custom>> {
        let is_it = |one: &Resource| one.group == key.group && one.plural == key.plural;
        self.all.iter().find(|served| is_it(&served.resource))?.custom.clone()
    }

    /// Resource of a kind.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let mut resources = self.all.iter().map(|served| &served.resource);
        resources.find(|one| one.kind == kind && one.api_version() == api_version)
    }

    /// Reads the definitions again.
    pub(crate) fn refresh(&mut self, store: &Store) {
        self.all.retain(|served| served.custom.is_none());
        let definitions = store.objects.iter().filter(|(key, _)| key.is_definition());
        for (resource, custom) in definitions.flat_map(|(_, definition)| versions(definition)) {
            self.all.push(Served { resource, custom: Some(custom) });
        }
    }
}

/// Group of the definitions of custom resources.
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Built-in resources without the subresource `status`.
const STATELESS: [&str; 10] = [
    "events",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "leases",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "network-attachment-definitions",
];

const SHORT_NAMES: [(&str, &str); 15] = [
    ("pods", "po"),
    ("events", "ev"),
    ("namespaces", "ns"),
    ("nodes", "no"),
    ("configmaps", "cm"),
    ("services", "svc"),
    ("serviceaccounts", "sa"),
    ("deployments", "deploy"),
    ("replicasets", "rs"),
    ("statefulsets", "sts"),
    ("daemonsets", "ds"),
    ("cronjobs", "cj"),
    ("poddisruptionbudgets", "pdb"),
    ("customresourcedefinitions", "crd"),
    ("network-attachment-definitions", "net-attach-def"),
];

/// Resources of a new server: group, version, plural, kind, namespaced.
const BUILT_IN: [(&str, &str, &str, &str, bool); 22] = [
    ("", "v1", "pods", "Pod", true),
    ("", "v1", "events", "Event", true),
    ("", "v1", "namespaces", "Namespace", false),
    ("", "v1", "nodes", "Node", false),
    ("", "v1", "configmaps", "ConfigMap", true),
    ("", "v1", "secrets", "Secret", true),
    ("", "v1", "services", "Service", true),
    ("", "v1", "serviceaccounts", "ServiceAccount", true),
    ("apps", "v1", "deployments", "Deployment", true),
    ("apps", "v1", "replicasets", "ReplicaSet", true),
    ("apps", "v1", "statefulsets", "StatefulSet", true),
    ("apps", "v1", "daemonsets", "DaemonSet", true),
    ("batch", "v1", "jobs", "Job", true),
    ("batch", "v1", "cronjobs", "CronJob", true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", true),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false),
    (DEFINITIONS.0, "v1", DEFINITIONS.1, "CustomResourceDefinition", false),
    ("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition", true),
];
