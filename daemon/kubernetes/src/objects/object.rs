//! Objects with a part of their fields.

use std::borrow::Cow;

use ipam_api::brand::{KUBERNETES_RESET, NMSTATE_RESET};
use ipam_api::kubernetes::{UsableLabels, controller};
use ipam_api::limits::{KUBERNETES_LABELS_READ_MAX, KUBERNETES_RESET_CHARS_MAX, LABELS_MAX};
use ipam_api::resource::{Controller, Labels};
use ipam_api::time::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;

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
    pub(crate) labels: UsableLabels<KUBERNETES_LABELS_READ_MAX>,
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
    uid: String,
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

    /// Value of the annotation that requests a reset, under either of its names.
    pub(crate) fn reset(&self) -> Option<String> {
        let value = self.annotation(KUBERNETES_RESET).or_else(|| self.annotation(NMSTATE_RESET))?;
        Some(value.chars().take(KUBERNETES_RESET_CHARS_MAX).collect())
    }
}

impl OwnerReference {
    /// Owner as requests name it; none if the servers could not accept it.
    pub(crate) fn to_controller(&self) -> Option<Controller> {
        controller(&self.api_version, &self.kind, &self.name, &self.uid)
    }

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
