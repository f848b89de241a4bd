//! Creation of objects.

use serde_json::{Value, json};
use uuid::Uuid;

use super::admit::admit;
use super::object::{check_type, describe, is_deleting};
use super::strategy::{has_generation, prepare_create};
use crate::custom::Cause;
use crate::garbage;
use crate::merge::{Shape, record};
use crate::options::Options;
use crate::path::Place;
use crate::server::State;
use crate::status::Refusal;
use crate::store::Key;

/// Fields of the metadata that only the server writes.
const OWN: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

/// Creates an object of a collection.
///
/// # Errors
/// 400, 403, 404, 409 or 422.
pub(crate) fn create(
    state: &mut State,
    place: &Place,
    mut object: Value,
    options: &mut Options,
) -> Result<Value, Refusal> {
    check_type(&object, place)?;
    if place.custom.as_ref().is_some_and(|custom| custom.is_terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Refusal::new(405, why));
    }
    let version = &object["metadata"]["resourceVersion"];
    if version.as_str().is_some_and(|version| !version.is_empty()) {
        return Err(Refusal::new(500, "resourceVersion should not be set on objects to be created"));
    }
    let metadata = &mut object["metadata"];
    if let (None, Some(prefix)) = (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        let random = Uuid::new_v4().simple().to_string();
        metadata["name"] = format!("{prefix}{}", random.get(..5).unwrap_or_default()).into();
    }
    let name = metadata["name"].as_str().unwrap_or_default().to_owned();
    if !is_name(&name) {
        let why =
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'";
        return Err(Refusal::invalid(
            place,
            &name,
            &[Cause::invalid("metadata.name", &name.as_str().into(), why)],
        ));
    }
    let namespace = place.namespace.clone().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(other) if other != namespace => {
            return Err(Refusal::new(400, "the namespace of the object does not match the request"));
        }
        _ if place.resource.is_namespaced => metadata["namespace"] = namespace.as_str().into(),
        _ => {}
    }
    if place.resource.is_namespaced {
        check_namespace(state, &namespace)?;
    }
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|field, _| !OWN.contains(&field.as_str()));
    }
    metadata["uid"] = Uuid::new_v4().to_string().into();
    metadata["creationTimestamp"] = state.clock.stamp().into();
    let key = Key::of(place, &namespace, &name);
    describe(&mut object, place);
    prepare_create(place, &mut object);
    admit(state, place, None, &mut object, options)?;
    // An invalid object is refused as such, even if an object of its name exists.
    if let Some(present) = state.store.objects.get(&key) {
        return Err(Refusal::exists(&place.qualified(), &name, is_deleting(present)));
    }
    if has_generation(place) {
        object["metadata"]["generation"] = json!(1);
    }
    if !options.is_apply {
        // The server itself sets the first status.
        let status = object.as_object_mut().filter(|_| place.has_status).and_then(|all| all.remove("status"));
        record(None, &mut object, (&options.manager, "", &state.clock.stamp()), Shape::of(place));
        object.as_object_mut().unwrap().extend(status.map(|status| ("status".to_owned(), status)));
    }
    if options.is_dry_run {
        return Ok(object);
    }
    let object = state.put(key.clone(), object);
    garbage::collect_orphan(state, &key);
    Ok(place.shown(&object))
}

/// Refuses a new object in a namespace that doesn't exist, or that is being deleted.
fn check_namespace(state: &State, namespace: &str) -> Result<(), Refusal> {
    match state.store.objects.get(&Key::namespace(namespace)) {
        Some(object) if is_deleting(object) => {
            let message = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = json!({
                "reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated"),
            });
            Err(Refusal::new(403, message).details(json!({"causes": [cause]})))
        }
        Some(_) => Ok(()),
        None if state.implied_namespaces.contains(namespace) => Ok(()),
        None => Err(Refusal::missing("namespaces", namespace)),
    }
}

fn is_name(name: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= 253
        && is_edge(name.chars().next())
        && is_edge(name.chars().last())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
}
