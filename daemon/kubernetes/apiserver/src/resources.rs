//! Resources that the server knows.

/// Resource of an API group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Group; empty for the oldest one.
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

    /// Returns true if objects have this subresource.
    pub(crate) fn has(&self, subresource: &str) -> bool {
        subresource == "status" && !STATELESS.contains(&self.plural.as_str())
    }
}

/// Resources whose objects have no status of their own path.
const STATELESS: [&str; 5] = ["events", "configmaps", "secrets", "leases", "network-attachment-definitions"];

/// Resources of a new server: group, version, plural, kind, namespaced.
const BUILT_IN: [(&str, &str, &str, &str, bool); 14] = [
    ("", "v1", "pods", "Pod", true),
    ("", "v1", "events", "Event", true),
    ("", "v1", "namespaces", "Namespace", false),
    ("", "v1", "nodes", "Node", false),
    ("", "v1", "configmaps", "ConfigMap", true),
    ("", "v1", "secrets", "Secret", true),
    ("apps", "v1", "deployments", "Deployment", true),
    ("apps", "v1", "replicasets", "ReplicaSet", true),
    ("apps", "v1", "statefulsets", "StatefulSet", true),
    ("apps", "v1", "daemonsets", "DaemonSet", true),
    ("batch", "v1", "jobs", "Job", true),
    ("batch", "v1", "cronjobs", "CronJob", true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true),
    ("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition", true),
];

pub(crate) fn built_in() -> Vec<Resource> {
    let resource = |(group, version, plural, kind, is_namespaced): (&str, &str, &str, &str, bool)| Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        is_namespaced,
    };
    BUILT_IN.map(resource).to_vec()
}
