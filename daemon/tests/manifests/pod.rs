//! Pods of the manifests, as a kubelet sees them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// One pod on a node.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) spec: Value,
    /// Network of the annotation for Multus.
    pub(crate) network: Option<String>,
}

impl Pod {
    /// Pod as the API server has it.
    pub(crate) fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let text = |key: &str| metadata[key].as_str().unwrap().to_owned();
        let network = metadata["annotations"]["k8s.v1.cni.cncf.io/networks"].as_str();
        Self {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            spec: object["spec"].clone(),
            network: network.map(str::to_owned),
        }
    }

    /// List of the specification, such as `containers`.
    pub(crate) fn list<'a>(&'a self, list: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.spec[list].as_array().into_iter().flatten()
    }

    /// Volume with this name, or none for a claim of a StatefulSet.
    pub(crate) fn volume(&self, name: &str) -> Option<&Map<String, Value>> {
        let volumes = self.spec["volumes"].as_array()?;
        volumes.iter().find(|one| one["name"] == name)?.as_object()
    }

    /// True if its containers run to their end.
    pub(crate) fn is_job(&self) -> bool {
        self.spec["restartPolicy"] == "OnFailure"
    }

    /// Service account with a mounted token, if any.
    pub(crate) fn account(&self) -> Option<&str> {
        let is_mounted = self.spec["automountServiceAccountToken"] != false;
        self.spec["serviceAccountName"].as_str().filter(|_| is_mounted)
    }

    /// A number of the security context of the pod.
    pub(crate) fn context(&self, key: &str) -> Option<u32> {
        u32::try_from(self.spec["securityContext"][key].as_u64()?).ok()
    }
}

/// Path of an object of a resource, such as `apps/v1/daemonsets`.
pub(crate) fn path_of(resource: &str, object: &Value) -> String {
    let (version, plural) = resource.rsplit_once('/').unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let part = |key: &str| object["metadata"][key].as_str().unwrap();
    format!("/{root}/{version}/namespaces/{}/{plural}/{}", part("namespace"), part("name"))
}

/// Environment of a container; later variables may refer to earlier ones.
pub(crate) fn environment(container: &Value, fields: &BTreeMap<&str, String>) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for variable in container["env"].as_array().into_iter().flatten() {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some(path) => fields.get(path).unwrap_or_else(|| panic!("no field {path}")).clone(),
            None => expand(variable["value"].as_str().unwrap(), &variables),
        };
        variables.insert(variable["name"].as_str().unwrap().to_owned(), value);
    }
    variables
}

/// Words of a container: its command and arguments, or those of its image.
pub(crate) fn words(container: &Value, variables: &BTreeMap<String, String>) -> Vec<String> {
    let words = ["command", "args"].iter().filter_map(|list| container[list].as_array()).flatten();
    words.map(|word| expand(word.as_str().unwrap(), variables)).collect()
}

/// Replaces `$(NAME)` by variables, as a kubelet does.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("$({name})"), value))
}
