//! Removal of objects with all that follows from it.

use serde_json::Value;

use super::contents;
use super::owners::{collect, dependents, references, wait_for_dependents};
use crate::server::State;
use crate::store::Key;

/// Removes an object, and collects its dependents.
pub(crate) fn remove(state: &mut State, key: &Key) -> Option<Value> {
    let removed = state.remove(key)?;
    for dependent in dependents(state, &removed["metadata"]["uid"]) {
        collect(state, &dependent);
    }
    for reference in references(&removed) {
        if let Some(owner) = state.store.key_of(&reference["uid"]) {
            wait_for_dependents(state, &owner);
        }
    }
    contents::finish(state, key);
    Some(removed)
}

/// Starts the work that precedes the removal of an object in deletion.
pub(crate) fn begin(state: &mut State, key: &Key) {
    wait_for_dependents(state, key);
    contents::terminate(state, key);
}
