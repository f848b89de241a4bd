//! Objects with a part of their fields.

use std::borrow::Cow;
use std::fmt;

use ipam_api::limits::{KUBERNETES_LABELS_READ_MAX, LABELS_MAX};
use ipam_api::resource::Labels;
use ipam_api::selector::check_label;
use ipam_api::time::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

const _: () = assert!(LABELS_MAX < KUBERNETES_LABELS_READ_MAX);

/// Object with metadata, and a part of its spec and status.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    from = "Wire<S, T>",
    bound(deserialize = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default")
)]
pub(crate) struct Object<S, T> {
    pub(crate) metadata: Metadata,
    pub(crate) spec: S,
    pub(crate) status: T,
    /// Part of the metadata that kube reads.
    meta: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(default, bound(deserialize = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default"))]
struct Wire<S, T> {
    metadata: Metadata,
    spec: S,
    status: T,
}

impl<S: Default, T: Default> Default for Wire<S, T> {
    fn default() -> Self {
        Self { metadata: Metadata::default(), spec: S::default(), status: T::default() }
    }
}

/// Metadata of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    resource_version: String,
    pub(crate) generation: i64,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    pub(crate) labels: UsableLabels,
    pub(crate) annotations: Option<Labels>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// Owner of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    controller: bool,
}

impl Metadata {
    /// Owner that controls the object.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().flatten().find(|owner| owner.controller)
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

impl OwnerReference {
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

impl<S, T> From<Wire<S, T>> for Object<S, T> {
    fn from(Wire { metadata, spec, status }: Wire<S, T>) -> Self {
        let meta = ObjectMeta {
            name: Some(metadata.name.clone()),
            resource_version: Some(metadata.resource_version.clone()),
            ..ObjectMeta::default()
        };
        Self { metadata, spec, status, meta }
    }
}

impl<S, T> kube::Resource for Object<S, T> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// Built-in resource of version `v1`.
pub(crate) fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Labels by which pools can select; of too many the first ones by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsableLabels(pub(crate) Labels);

struct LabelsVisitor;

impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = UsableLabels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(UsableLabels::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut labels = Labels::new();
        while let Some(key) = map.next_key::<String>()? {
            if check_label(&key, "").is_err() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value::<String>()?;
            if check_label(&key, &value).is_ok() {
                labels.insert(key, value);
            }
            if labels.len() > KUBERNETES_LABELS_READ_MAX {
                labels.pop_last();
            }
        }
        Ok(UsableLabels(labels))
    }
}

impl<'de> Deserialize<'de> for UsableLabels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_bounded_and_usable() {
        let read = |value| serde_json::from_value::<UsableLabels>(value).unwrap().0;
        assert!(read(json!(null)).is_empty());
        let kept = read(json!({"a": "1", "b c": "2", "d": "x".repeat(5000)}));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a"]);
        let many = (0..5000).map(|number| (format!("k{number:04}"), json!("v"))).collect();
        let kept = read(serde_json::Value::Object(many));
        assert_eq!(kept.len(), KUBERNETES_LABELS_READ_MAX);
        assert!(kept.contains_key("k0000") && kept.contains_key("k1023"));
    }
}
