//! Served version of a custom resource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cause::Cause;
use super::defaults::add_defaults;
use super::deprecation::deprecation;
use super::prune::prune;
use super::rules::check_rules;
use super::validate::validate;
use crate::cluster_api::{convert, converts};
use crate::resources::Resource;

/// Part of a definition that one version needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Custom {
    /// Names, as in the definition.
    pub(crate) names: Value,
    /// Value of `apiVersion`.
    api_version: String,
    /// Value of `apiVersion` of stored objects.
    stored_version: String,
    /// True if the webhooks of Cluster API convert and review objects.
    pub(crate) has_webhook: bool,
    /// Warning with each answer.
    pub(crate) deprecation: Option<String>,
    /// Spec of the whole definition.
    spec: Value,
    schema: Value,
    /// Schema of the version in which objects are stored.
    stored_schema: Value,
    /// Subresources, as in the definition.
    subresources: Value,
    pub(crate) columns: Vec<Value>,
    /// True while the definition is being deleted.
    pub(crate) is_terminating: bool,
}

/// Served versions of a definition.
pub(crate) fn versions(definition: &Value) -> Vec<(Resource, Arc<Custom>)> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = spec["versions"].as_array().cloned().unwrap_or_default();
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let stored = all.iter().find(|one| one["storage"] == true).cloned().unwrap_or_default();
    let served = all.iter().filter(|version| version["served"] == true).map(|version| {
        let resource = Resource {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            plural: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            is_namespaced: spec["scope"] == "Namespaced",
        };
        let custom = Custom {
            names: spec["names"].clone(),
            api_version: resource.api_version(),
            stored_version: Resource { version: text(&stored["name"]), ..resource.clone() }.api_version(),
            has_webhook: converts(definition),
            deprecation: deprecation(version, &resource, &all),
            spec: spec.clone(),
            schema: schema(version),
            stored_schema: schema(&stored),
            subresources: version["subresources"].clone(),
            columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
            is_terminating: !definition["metadata"]["deletionTimestamp"].is_null(),
        };
        (resource, Arc::new(custom))
    });
    served.collect()
}

impl Custom {
    pub(crate) fn has(&self, subresource: &str) -> bool {
        self.subresources[subresource].is_object()
    }

    /// Paths of the subresource `scale`.
    pub(crate) fn scale(&self) -> &Value {
        &self.subresources["scale"]
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns true for the same version of the same definition, even if the definition is being deleted.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.api_version == other.api_version && self.spec == other.spec
    }

    /// Stored object in this version.
    pub(crate) fn shown(&self, stored: &Value) -> Value {
        let mut object = stored.clone();
        self.convert(&mut object, &self.api_version);
        prune(&mut object, &self.schema);
        add_defaults(&mut object, &self.schema);
        object
    }

    /// Object in the version in which it is stored.
    pub(crate) fn stored(&self, mut object: Value) -> Value {
        self.convert(&mut object, &self.stored_version);
        prune(&mut object, &self.stored_schema);
        object
    }

    fn convert(&self, object: &mut Value, api_version: &str) {
        if self.has_webhook {
            convert(object, api_version.rsplit('/').next().unwrap_or_default());
        }
        object["apiVersion"] = api_version.into();
    }

    /// Returns true if an object is stored in an older version of the storage. The next write changes it.
    pub(crate) fn is_outdated(&self, stored: &Value) -> bool {
        stored["apiVersion"] != self.stored_version.as_str()
    }

    /// Removes the unknown fields of an object, and returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = prune(object, &self.schema);
        add_defaults(object, &self.schema);
        unknown
    }

    /// Causes for which an object doesn't fit the schema or its rules.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = validate(object, &self.schema);
        // Rules may rely on a valid object.
        if causes.is_empty() { check_rules(object, old, &self.schema) } else { causes }
    }
}

/// Path of a field.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Keys of an item of a list of maps.
pub(crate) fn keys(item: &Value, schema: &Value) -> Value {
    let mut own = json!({});
    for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str)
    {
        own[key] = item[key].clone();
    }
    own
}
