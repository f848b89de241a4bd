//! Updates of objects and of their status.

use serde_json::{Value, json};

use super::admit::admit;
use super::object::{check_type, describe, finalizers, find, is_deleting, is_held};
use super::strategy::{has_generation, keep, prepare_update};
use crate::custom::{Cause, Reason};
use crate::garbage;
use crate::merge::{Shape, record};
use crate::options::Options;
use crate::path::Place;
use crate::server::State;
use crate::status::Refusal;
use crate::store::Key;

/// Fields of the metadata that an update can't change.
const KEPT: [&str; 8] = [
    "uid",
    "name",
    "namespace",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

/// Replaces an object, or its status.
///
/// # Errors
/// 400, 404, 409 or 422.
pub(crate) fn update(
    state: &mut State,
    place: &Place,
    object: Value,
    options: &mut Options,
) -> Result<Value, Refusal> {
    let (key, present) = find(&state.store, place)?;
    check_type(&object, place)?;
    check_identity(place, &present, &object)?;
    let is_status = place.subresource.as_deref() == Some("status");
    let mut next = if is_status { present.clone() } else { object.clone() };
    if is_status {
        keep(&object, &mut next, "status");
    } else {
        prepare_update(place, &present, &mut next);
    }
    for field in KEPT {
        keep(&present["metadata"], &mut next["metadata"], field);
    }
    describe(&mut next, place);
    check_finalizers(place, &present, &next)?;
    admit(state, place, Some(&present), &mut next, options)?;
    if options.is_apply {
        next["metadata"]["managedFields"] = object["metadata"]["managedFields"].clone();
    } else {
        let subresource = place.subresource.as_deref().unwrap_or_default();
        let now = state.clock.stamp();
        let by = (options.manager.as_str(), subresource, now.as_str());
        record(Some(&present), &mut next, by, Shape::of(place));
    }
    store(state, place, (key, present), next, options)
}

/// Stores the next state of an object, unless nothing has changed.
fn store(
    state: &mut State,
    place: &Place,
    (key, present): (Key, Value),
    mut next: Value,
    options: &mut Options,
) -> Result<Value, Refusal> {
    if has_generation(place) && wanted(place, &present) != wanted(place, &next) {
        let generation = present["metadata"]["generation"].as_u64().unwrap_or_default();
        next["metadata"]["generation"] = json!(generation + 1);
    }
    let is_outdated = |stored: &Value| place.custom.as_ref().is_some_and(|one| one.is_outdated(stored));
    let is_same = next == present && !state.store.objects.get(&key).is_some_and(is_outdated);
    if options.is_dry_run || is_same {
        return Ok(next);
    }
    let next = place.shown(&state.put(key.clone(), next));
    let has_grace = next["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or_default() > 0;
    if is_deleting(&next) && !has_grace && !is_held(&key, &next) {
        return Ok(garbage::remove(state, &key).map_or(next, |last| place.shown(&last)));
    }
    garbage::collect_orphan(state, &key);
    garbage::release_owners(state, &present, &next);
    Ok(next)
}

/// Fields whose changes the generation counts.
fn wanted(place: &Place, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|field, _| {
            !["apiVersion", "metadata"].contains(&field.as_str()) && (field != "status" || !place.has_status)
        });
    }
    object
}

fn check_identity(place: &Place, present: &Value, object: &Value) -> Result<(), Refusal> {
    let (is, named) = (&present["metadata"], &object["metadata"]);
    let name = place.name.as_deref().unwrap_or_default();
    let differs = |field: &str| {
        named[field].as_str().is_some_and(|value| !value.is_empty() && is[field].as_str() != Some(value))
    };
    if differs("name") || named["name"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::new(400, "the name of the object does not match the name on the URL"));
    }
    if differs("namespace") {
        return Err(Refusal::new(400, "the namespace of the object does not match the request"));
    }
    let why = if differs("uid") {
        format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            named["uid"], is["uid"]
        )
    } else if differs("resourceVersion") {
        "the object has been modified; please apply your changes to the latest version and try again"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::conflict(&place.qualified(), name, &why))
}

fn check_finalizers(place: &Place, present: &Value, next: &Value) -> Result<(), Refusal> {
    let before = finalizers(present);
    let new: Vec<String> = finalizers(next).into_iter().filter(|one| !before.contains(one)).collect();
    if !is_deleting(present) || new.is_empty() {
        return Ok(());
    }
    let why = "no new finalizers can be added if the object is being deleted";
    let why = format!("Forbidden: {why}, found new finalizers {new:?}");
    let name = place.name.as_deref().unwrap_or_default();
    Err(Refusal::invalid(place, name, &[Cause::new(Reason::Forbidden, "metadata.finalizers", why)]))
}
