//! Service of the kinds: their definitions as objects of the server.

use serde_json::{Value, json};
use uuid::Uuid;

use super::definitions::definitions;
use super::versions::ClusterApi;
use crate::custom::accept;
use crate::server::State;
use crate::store::Key;

/// Writes the definitions of all kinds with these versions. Objects stay as they are.
///
/// # Panics
/// If a definition is wrong.
pub(crate) fn serve(state: &mut State, versions: ClusterApi) {
    for definition in definitions(versions) {
        define(state, definition);
    }
}

fn define(state: &mut State, mut definition: Value) {
    let key = Key::definition(definition["metadata"]["name"].as_str().unwrap_or_default());
    let now = state.clock.stamp();
    let present = state.store.objects.get(&key).cloned();
    match &present {
        Some(present) => {
            let generation = present["metadata"]["generation"].as_u64().unwrap_or_default();
            definition["metadata"] = present["metadata"].clone();
            definition["metadata"]["generation"] = json!(generation + 1);
        }
        None => {
            let metadata = &mut definition["metadata"];
            metadata["uid"] = Uuid::new_v4().to_string().into();
            (metadata["creationTimestamp"], metadata["generation"]) = (now.as_str().into(), json!(1));
        }
    }
    accept(&mut definition, present.as_ref(), &now).expect("a definition of this crate");
    if present.is_none_or(|present| present["spec"] != definition["spec"]) {
        state.put(key, definition);
    }
}
