//! Writes of objects: create, update, patch and delete.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::path::Place;
use crate::status::Refusal;
use crate::store::{Key, Store};

/// Creates an object of a collection.
///
/// # Errors
/// 400, 409 or 422.
pub(crate) fn create(store: &mut Store, place: &Place, mut object: Value) -> Result<Value, Refusal> {
    if !object["metadata"].is_object() {
        return Err(Refusal::new(400, "the object has no metadata"));
    }
    let metadata = &mut object["metadata"];
    if let (None, Some(prefix)) = (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        let random = Uuid::new_v4().simple().to_string();
        metadata["name"] = format!("{prefix}{}", random.get(..5).unwrap_or_default()).into();
    }
    let Some(name) = metadata["name"].as_str().filter(|name| is_name(name)).map(str::to_owned) else {
        return Err(Refusal::new(422, "metadata.name: Invalid value"));
    };
    let namespace = place.namespace.clone().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(other) if other != namespace => {
            return Err(Refusal::new(400, "the namespace of the object does not match the request"));
        }
        _ if place.resource.is_namespaced => metadata["namespace"] = namespace.as_str().into(),
        _ => {}
    }
    metadata["uid"] = Uuid::new_v4().to_string().into();
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let key = Key::of(place, &namespace, &name);
    if store.objects.contains_key(&key) {
        return Err(Refusal::exists(format!("{} \"{name}\" already exists", place.resource.plural)));
    }
    describe(&mut object, place);
    Ok(store.put(key, object))
}

/// Adds the type of an object.
pub(crate) fn describe(object: &mut Value, place: &Place) {
    object["apiVersion"] = place.resource.api_version().into();
    object["kind"] = place.resource.kind.as_str().into();
}

fn is_name(name: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= 253
        && is_edge(name.chars().next())
        && is_edge(name.chars().last())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
}

/// Replaces an object, or its status.
///
/// # Errors
/// 404 or 409.
pub(crate) fn update(store: &mut Store, place: &Place, object: Value) -> Result<Value, Refusal> {
    let (key, present) = find(store, place)?;
    let named = object["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty());
    if named.is_some_and(|named| present["metadata"]["resourceVersion"] != named) {
        return Err(Refusal::new(
            409,
            "the object has been modified; please apply your changes to the latest version",
        ));
    }
    let uid = &object["metadata"]["uid"];
    if !uid.is_null() && *uid != present["metadata"]["uid"] {
        return Err(Refusal::new(409, "Precondition failed: UID in object meta"));
    }
    let is_status = place.subresource.as_deref() == Some("status");
    let mut next = if is_status { present.clone() } else { object.clone() };
    let status = if is_status { &object } else { &present }.get("status").cloned();
    if let Some(fields) = next.as_object_mut() {
        fields.remove("status");
        fields.extend(status.map(|status| ("status".to_owned(), status)));
    }
    for own in ["uid", "creationTimestamp", "deletionTimestamp", "name", "namespace", "resourceVersion"] {
        let fields = next["metadata"].as_object_mut();
        let before = present["metadata"].get(own).cloned();
        if let (Some(fields), Some(before)) = (fields, before) {
            fields.insert(own.to_owned(), before);
        }
    }
    describe(&mut next, place);
    if next == present {
        return Ok(present);
    }
    let next = store.put(key.clone(), next);
    let is_ended = !next["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(&next);
    Ok(if is_ended { store.remove(&key).unwrap_or(next) } else { next })
}

/// Deletes an object; one with a grace or finalizers gets the time of its deletion first.
///
/// # Errors
/// 404, or 409 for another uid.
pub(crate) fn delete(
    store: &mut Store,
    place: &Place,
    options: &Value,
    grace: u64,
) -> Result<Value, Refusal> {
    let (key, mut object) = find(store, place)?;
    let uid = &options["preconditions"]["uid"];
    if !uid.is_null() && *uid != object["metadata"]["uid"] {
        return Err(Refusal::new(409, "Precondition failed: UID in precondition"));
    }
    let grace = options["gracePeriodSeconds"].as_u64().unwrap_or(grace);
    if grace == 0 && !has_finalizers(&object) {
        return store.remove(&key).ok_or_else(|| missing(place));
    }
    if object["metadata"]["deletionTimestamp"].is_null() {
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z".into();
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        object = store.put(key, object);
    }
    Ok(object)
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

pub(crate) fn find(store: &Store, place: &Place) -> Result<(Key, Value), Refusal> {
    let name = place.name.as_deref().unwrap_or_default();
    let key = Key::of(place, place.namespace.as_deref().unwrap_or_default(), name);
    let object = store.objects.get(&key).cloned().ok_or_else(|| missing(place))?;
    Ok((key, object))
}

fn missing(place: &Place) -> Refusal {
    let name = place.name.as_deref().unwrap_or_default();
    Refusal::new(404, format!("{} \"{name}\" not found", place.resource.plural))
}
