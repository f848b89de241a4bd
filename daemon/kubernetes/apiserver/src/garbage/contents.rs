//! Contents of namespaces, and objects of definitions.

use serde_json::json;

use super::removal::remove;
use crate::custom::CLEANUP;
use crate::options::Deletion;
use crate::server::State;
use crate::store::Key;
use crate::write::delete::end;
use crate::write::object::{finalizers, is_deleting, is_held, set_finalizers};

/// Deletes the contents of a namespace, or the objects of a definition, that is being deleted.
pub(super) fn terminate(state: &mut State, key: &Key) {
    if key.is_definition() {
        terminate_definition(state, key);
    } else if key.is_namespace() {
        terminate_namespace(state, key);
    }
}

fn terminate_namespace(state: &mut State, key: &Key) {
    let Some(mut object) = state.store.objects.get(key).cloned() else { return };
    if object["status"]["phase"] != "Terminating" {
        object["status"]["phase"] = json!("Terminating");
        state.put(key.clone(), object);
    }
    for content in contents(state, &key.name) {
        end(state, &content, &Deletion::default());
    }
    finish_namespace(state, &key.name);
}

fn terminate_definition(state: &mut State, key: &Key) {
    for object in objects_of(state, key) {
        end(state, &object, &Deletion::default());
    }
    finish_definition(state, key);
}

/// Ends the namespace and the definition of a removed object, if it was the last one.
pub(super) fn finish(state: &mut State, removed: &Key) {
    let name = format!("{}.{}", removed.plural, removed.group);
    finish_definition(state, &Key::definition(&name));
    if !removed.namespace.is_empty() {
        finish_namespace(state, &removed.namespace);
    }
}

fn contents(state: &State, namespace: &str) -> Vec<Key> {
    state.store.objects.keys().filter(|key| key.namespace == namespace).cloned().collect()
}

fn objects_of(state: &State, definition: &Key) -> Vec<Key> {
    let Some((plural, group)) = definition.name.split_once('.') else { return Vec::new() };
    let all = state.store.objects.keys().filter(|key| key.plural == plural && key.group == group);
    all.cloned().collect()
}

fn finish_definition(state: &mut State, key: &Key) {
    let Some(mut definition) = state.store.objects.get(key).cloned() else { return };
    if !is_deleting(&definition) || !objects_of(state, key).is_empty() {
        return;
    }
    let mut holding = finalizers(&definition);
    holding.retain(|one| one != CLEANUP);
    set_finalizers(&mut definition, &holding);
    let is_held = is_held(key, &definition);
    state.put(key.clone(), definition);
    if !is_held {
        remove(state, key);
    }
}

fn finish_namespace(state: &mut State, name: &str) {
    let key = Key::namespace(name);
    let Some(mut object) = state.store.objects.get(&key).cloned() else { return };
    if !is_deleting(&object) || !contents(state, name).is_empty() {
        return;
    }
    object["spec"]["finalizers"] = json!([]);
    let is_held = is_held(&key, &object);
    state.put(key.clone(), object);
    if !is_held {
        remove(state, &key);
    }
}
