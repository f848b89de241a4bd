//! Creation and update rules of individual kinds.

use serde_json::{Value, json};

use crate::path::Place;
use crate::resources::DEFINITIONS;

/// Sets the fields that the server determines in a new object.
pub(super) fn prepare_create(place: &Place, object: &mut Value) {
    // A kubelet registers its node together with the status.
    let keeps_status = place.is("", "nodes") || !place.has_status;
    if let (false, Some(fields)) = (keeps_status, object.as_object_mut()) {
        fields.remove("status");
    }
    if place.is("", "pods") {
        object["status"] = json!({"phase": "Pending"});
    } else if place.is("", "namespaces") {
        complete_namespace(object);
    }
}

/// Adds the fields of a new namespace, which hold it until its contents are deleted.
pub(crate) fn complete_namespace(object: &mut Value) {
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = object["metadata"]["name"].clone();
    object["spec"]["finalizers"] = json!(["kubernetes"]);
    object["status"] = json!({"phase": "Active"});
}

/// Restores the fields that an update can't change.
pub(super) fn prepare_update(place: &Place, present: &Value, next: &mut Value) {
    // A status with a path of its own is not written here.
    if place.has_status {
        keep(present, next, "status");
    }
    if place.is("", "namespaces") {
        keep(present, next, "spec");
    }
}

/// Restores a field from the present object.
pub(super) fn keep(present: &Value, next: &mut Value, field: &str) {
    let Some(fields) = next.as_object_mut() else { return };
    match present.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Returns true for kinds whose objects count the changes of their desired state.
pub(super) fn has_generation(place: &Place) -> bool {
    place.custom.is_some() || ["apps", "batch", DEFINITIONS.0].contains(&place.resource.group.as_str())
}
