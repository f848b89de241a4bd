//! Owners and dependents.

use serde_json::Value;

use super::removal::remove;
use crate::options::{Deletion, Propagation};
use crate::server::State;
use crate::store::Key;
use crate::write::delete::{FOREGROUND, end};
use crate::write::object::{finalizers, is_deleting, is_held, set_finalizers};

/// References of an object to its owners.
pub(super) fn references(object: &Value) -> Vec<Value> {
    object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default()
}

/// Objects that reference an owner by its uid.
pub(super) fn dependents(state: &State, uid: &Value) -> Vec<Key> {
    let depends = |object: &Value| {
        let references = object["metadata"]["ownerReferences"].as_array();
        references.into_iter().flatten().any(|reference| reference["uid"] == *uid)
    };
    let all = state.store.objects.iter().filter(|(_, object)| depends(object));
    all.map(|(key, _)| key.clone()).collect()
}

/// Deletes a new or changed object if all of its owners are absent. Otherwise removes its references to
/// absent owners.
pub(crate) fn collect_orphan(state: &mut State, key: &Key) {
    let Some(object) = state.store.objects.get(key) else { return };
    let references = references(object);
    if references.iter().any(|one| owner(state, key, one) == Owner::Absent) {
        collect(state, key);
    }
}

/// Completes the deletion of owners that waited for an object, if its reference was changed or removed.
pub(crate) fn release_owners(state: &mut State, before: &Value, after: &Value) {
    let kept = references(after);
    for reference in references(before).iter().filter(|reference| !kept.contains(reference)) {
        if let Some(owner) = state.store.key_of(&reference["uid"]) {
            wait_for_dependents(state, &owner);
        }
    }
}

/// Removes the references to an owner.
pub(crate) fn orphan(state: &mut State, uid: &Value) {
    for key in dependents(state, uid) {
        keep_references(state, &key, |reference| reference["uid"] != *uid);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Exists, or is of a kind that the server doesn't know.
    Solid,
    /// Waits for the deletion of its dependents.
    Waiting,
    Absent,
}

/// State of the owner that a reference of an object names.
fn owner(state: &State, dependent: &Key, reference: &Value) -> Owner {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let Some(resource) = state.registry.of_kind(text("apiVersion"), text("kind")) else {
        return Owner::Solid;
    };
    // An object of the whole cluster can't belong to one of a namespace: the reference is ignored.
    if resource.is_namespaced && dependent.namespace.is_empty() {
        return Owner::Solid;
    }
    let namespace = if resource.is_namespaced { dependent.namespace.clone() } else { String::new() };
    let key = Key {
        group: resource.group.clone(),
        plural: resource.plural.clone(),
        namespace,
        name: text("name").to_owned(),
    };
    match state.store.objects.get(&key).filter(|owner| owner["metadata"]["uid"] == reference["uid"]) {
        None => Owner::Absent,
        Some(owner) if is_waiting(owner) => Owner::Waiting,
        Some(_) => Owner::Solid,
    }
}

fn is_waiting(owner: &Value) -> bool {
    is_deleting(owner) && finalizers(owner).iter().any(|one| one == FOREGROUND)
}

/// Deletes a dependent without a solid owner. A dependent with a solid owner loses its other references.
pub(super) fn collect(state: &mut State, key: &Key) {
    let Some(object) = state.store.objects.get(key).cloned() else { return };
    let references = references(&object);
    let states: Vec<Owner> = references.iter().map(|reference| owner(state, key, reference)).collect();
    if states.contains(&Owner::Solid) {
        let solid: Vec<&Value> = references
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state == Owner::Solid)
            .map(|(one, _)| one)
            .collect();
        return keep_references(state, key, |reference| solid.contains(&reference));
    }
    let is_owner = !dependents(state, &object["metadata"]["uid"]).is_empty();
    let is_foreground = states.contains(&Owner::Waiting) && is_owner;
    let propagation = is_foreground.then_some(Propagation::Foreground);
    if !is_deleting(&object) {
        end(state, key, &Deletion { propagation, ..Deletion::default() });
    }
}

fn keep_references(state: &mut State, key: &Key, is_kept: impl Fn(&Value) -> bool) {
    let Some(mut object) = state.store.objects.get(key).cloned() else { return };
    let mut references = references(&object);
    let count = references.len();
    references.retain(is_kept);
    if references.len() == count {
        return;
    }
    match object["metadata"].as_object_mut() {
        Some(metadata) if references.is_empty() => _ = metadata.remove("ownerReferences"),
        _ => object["metadata"]["ownerReferences"] = references.into(),
    }
    state.put(key.clone(), object);
}

/// Deletes the dependents of a waiting owner, and completes its deletion once no dependent blocks it.
pub(super) fn wait_for_dependents(state: &mut State, key: &Key) {
    let is_waiting = |state: &State| state.store.objects.get(key).filter(|owner| is_waiting(owner)).cloned();
    let Some(owner) = is_waiting(state) else { return };
    let uid = &owner["metadata"]["uid"];
    for dependent in dependents(state, uid) {
        collect(state, &dependent);
    }
    // The removal of the last dependent may have ended the owner already.
    let Some(mut owner) = is_waiting(state) else { return };
    let blocks = |object: &Value| {
        let mine = |one: &Value| one["uid"] == *uid && one["blockOwnerDeletion"] == true;
        references(object).iter().any(mine)
    };
    if state.store.objects.values().any(blocks) {
        return;
    }
    let mut holding = finalizers(&owner);
    holding.retain(|one| one != FOREGROUND);
    set_finalizers(&mut owner, &holding);
    let is_held = is_held(key, &owner);
    state.put(key.clone(), owner);
    if !is_held {
        remove(state, key);
    }
}
