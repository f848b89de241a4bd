//! Parts of objects that writes read and check.

use serde_json::Value;

use crate::path::Place;
use crate::status::Refusal;
use crate::store::{Key, Store};

/// Object at a place as it is shown there, with its key.
///
/// # Errors
/// 404.
pub(crate) fn find(store: &Store, place: &Place) -> Result<(Key, Value), Refusal> {
    let name = place.name.as_deref().unwrap_or_default();
    let key = Key::of(place, place.namespace.as_deref().unwrap_or_default(), name);
    let missing = || Refusal::missing(&place.qualified(), name);
    let object = place.shown(store.objects.get(&key).ok_or_else(missing)?);
    Ok((key, object))
}

/// Adds the type of an object.
pub(crate) fn describe(object: &mut Value, place: &Place) {
    object["apiVersion"] = place.resource.api_version().into();
    object["kind"] = place.resource.kind.as_str().into();
}

/// Refuses an object of another type than that of its place.
///
/// # Errors
/// 400.
pub(crate) fn check_type(object: &Value, place: &Place) -> Result<(), Refusal> {
    if !object.is_object() {
        return Err(Refusal::new(400, "the body is no object"));
    }
    let (version, kind) = (place.resource.api_version(), &place.resource.kind);
    for (field, expected) in [("apiVersion", &version), ("kind", kind)] {
        let is_missing = place.custom.is_some() && object[field].as_str().is_none_or(str::is_empty);
        if is_missing {
            return Err(Refusal::new(400, format!("Object '{field}' is missing")));
        }
        if object[field].as_str().is_some_and(|given| given != expected) {
            let given = &object[field];
            return Err(Refusal::new(400, format!("{field} {given} does not match the expected {expected}")));
        }
    }
    Ok(())
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let all = object["metadata"]["finalizers"].as_array();
    let texts = all.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if finalizers.is_empty() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
    } else {
        object["metadata"]["finalizers"] = finalizers.into();
    }
}

/// Returns true if a finalizer holds the object: one of the metadata, or one of a namespace's own.
pub(crate) fn is_held(key: &Key, object: &Value) -> bool {
    let own = object["spec"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    !finalizers(object).is_empty() || key.is_namespace() && own
}
