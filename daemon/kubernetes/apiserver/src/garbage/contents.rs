//! Contents of namespaces.

use serde_json::json;

use super::removal::remove;
use crate::options::Deletion;
use crate::server::State;
use crate::store::Key;
use crate::write::delete::end;
use crate::write::object::{is_deleting, is_held};

/// Deletes the contents of a namespace that is being deleted.
pub(super) fn terminate(state: &mut State, key: &Key) {
    if !key.is_namespace() {
        return;
    }
    let Some(mut object) = state.store.objects.get(key).cloned() else { return };
    if object["status"]["phase"] != "Terminating" {
        object["status"]["phase"] = json!("Terminating");
        state.store.put(key.clone(), object);
    }
    for content in contents(state, &key.name) {
        end(state, &content, &Deletion::default());
    }
    finish_namespace(state, &key.name);
}

/// Ends the namespace of a removed object, if it was the last one there.
pub(super) fn finish(state: &mut State, removed: &Key) {
    if !removed.namespace.is_empty() {
        finish_namespace(state, &removed.namespace);
    }
}

fn contents(state: &State, namespace: &str) -> Vec<Key> {
    state.store.objects.keys().filter(|key| key.namespace == namespace).cloned().collect()
}

fn finish_namespace(state: &mut State, name: &str) {
    let key = Key::namespace(name);
    let Some(mut object) = state.store.objects.get(&key).cloned() else { return };
    if !is_deleting(&object) || !contents(state, name).is_empty() {
        return;
    }
    object["spec"]["finalizers"] = json!([]);
    let is_held = is_held(&key, &object);
    state.store.put(key.clone(), object);
    if !is_held {
        remove(state, &key);
    }
}
