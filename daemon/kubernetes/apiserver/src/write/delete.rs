//! Deletion of objects.

use serde_json::{Value, json};

use super::object::{finalizers, find, is_deleting, is_held, set_finalizers};
use crate::garbage;
use crate::options::{Deletion, Propagation};
use crate::path::Place;
use crate::select::Select;
use crate::server::State;
use crate::status::{Refusal, success};
use crate::store::Key;

/// Finalizer of an object that waits for the deletion of its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
/// Default grace period of a pod, in seconds.
const GRACE_S: u64 = 30;

/// Deletes an object. With a grace period or finalizers, it only gets a deletion timestamp at first.
///
/// # Errors
/// 404, or 409 for other preconditions.
pub(crate) fn delete(state: &mut State, place: &Place, deletion: &Deletion) -> Result<Value, Refusal> {
    let (key, object) = find(&state.store, place)?;
    let metadata = &object["metadata"];
    for (field, wanted) in [("uid", &deletion.uid), ("resourceVersion", &deletion.version)] {
        if wanted.as_ref().is_some_and(|wanted| metadata[field] != wanted.as_str()) {
            let why = format!("Precondition failed: {field} in object meta: {}", metadata[field]);
            return Err(Refusal::conflict(&place.qualified(), &key.name, &why));
        }
    }
    let uid = metadata["uid"].clone();
    let (last, is_gone) = if deletion.is_dry_run {
        (object, true)
    } else {
        end(state, &key, deletion).unwrap_or((object, true))
    };
    // The real server returns deleted pods, and a status for most kinds.
    let is_shown = !is_gone || place.is("", "pods");
    Ok(if is_shown { place.shown(&last) } else { success(place, &key.name, &uid) })
}

/// Deletes the selected objects of a collection, and returns them.
pub(crate) fn delete_collection(
    state: &mut State,
    place: &Place,
    select: &Select,
    deletion: &Deletion,
) -> Vec<Value> {
    let chosen = state.store.objects.iter().filter(|(key, object)| key.is_in(place) && select.fits(object));
    let keys: Vec<Key> = chosen.map(|(key, _)| key.clone()).collect();
    let is_dry_run = deletion.is_dry_run;
    let last = |key: Key| match is_dry_run {
        true => state.store.objects.get(&key).cloned(),
        false => end(state, &key, deletion).map(|(object, _)| object),
    };
    keys.into_iter().filter_map(last).map(|object| place.shown(&object)).collect()
}

/// Deletes an object without conditions. Returns its last state, and true if the object was removed.
pub(crate) fn end(state: &mut State, key: &Key, deletion: &Deletion) -> Option<(Value, bool)> {
    let present = state.store.objects.get(key)?.clone();
    let mut object = present.clone();
    let propagation = deletion.propagation.unwrap_or_else(|| default_propagation(key, &object));
    let mut holding = finalizers(&object);
    holding.retain(|one| one != FOREGROUND && one != ORPHAN);
    match propagation {
        Propagation::Foreground => holding.push(FOREGROUND.to_owned()),
        Propagation::Orphan => garbage::orphan(state, &object["metadata"]["uid"]),
        Propagation::Background => {}
    }
    set_finalizers(&mut object, &holding);
    let grace_s = grace_s(key, &object, deletion.grace_s);
    if grace_s == 0 && !is_held(key, &object) {
        return Some((garbage::remove(state, key)?, true));
    }
    let before_s = object["metadata"]["deletionGracePeriodSeconds"].as_u64();
    if !is_deleting(&object) || before_s.is_some_and(|before_s| grace_s < before_s) {
        let time = state.clock.now() + jiff::SignedDuration::from_secs(i64::try_from(grace_s).unwrap());
        object["metadata"]["deletionTimestamp"] = time.to_string().into();
        object["metadata"]["deletionGracePeriodSeconds"] = json!(grace_s);
        if let Some(generation) = object["metadata"]["generation"].as_u64() {
            object["metadata"]["generation"] = json!(generation + 1);
        }
    }
    if object != present {
        object = state.put(key.clone(), object);
    }
    garbage::begin(state, key);
    let last = state.store.objects.get(key).cloned();
    let is_gone = last.is_none();
    Some((last.unwrap_or(object), is_gone))
}

/// Propagation of a deletion that doesn't specify one.
fn default_propagation(key: &Key, object: &Value) -> Propagation {
    let holding = finalizers(object);
    let has = |finalizer: &str| holding.iter().any(|one| one == finalizer);
    if has(ORPHAN) || key.group == "batch" && key.plural == "jobs" && !has(FOREGROUND) {
        Propagation::Orphan
    } else if has(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

/// Grace period in seconds; 0 for all objects except pods that a node may run.
fn grace_s(key: &Key, object: &Value, wanted_s: Option<u64>) -> u64 {
    let is_on_node = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let has_ended = ["Succeeded", "Failed"].iter().any(|phase| object["status"]["phase"] == *phase);
    if !key.is_pod() || !is_on_node || has_ended {
        return 0;
    }
    let own_s = object["spec"]["terminationGracePeriodSeconds"].as_u64();
    wanted_s.or(own_s).unwrap_or(GRACE_S)
}
