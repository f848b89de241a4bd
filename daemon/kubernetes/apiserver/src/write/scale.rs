//! Subresource `scale`: replicas of objects of any kind.

use serde_json::{Value, json};

use crate::path::Place;
use crate::status::Refusal;

/// Paths of replicas in built-in kinds.
const BUILT_IN: [(&str, &str); 2] =
    [("specReplicasPath", ".spec.replicas"), ("statusReplicasPath", ".status.replicas")];

/// Path of a part of the scale, if the kind has it.
fn path(place: &Place, part: &str) -> Option<String> {
    let path = match &place.custom {
        Some(custom) => custom.scale()[part].as_str()?,
        None => BUILT_IN.iter().find(|(one, _)| *one == part)?.1,
    };
    Some(path.replace('.', "/"))
}

/// Scale of an object.
pub(crate) fn scale_of(place: &Place, object: &Value) -> Value {
    let at = |part: &str| path(place, part).and_then(|path| object.pointer(&path).cloned());
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": at("specReplicasPath").unwrap_or_else(|| json!(0))},
        "status": {"replicas": at("statusReplicasPath").unwrap_or_else(|| json!(0))},
    });
    if let Some(namespace) = metadata.get("namespace") {
        scale["metadata"]["namespace"] = namespace.clone();
    }
    if let Some(selector) = at("labelSelectorPath") {
        scale["status"]["selector"] = selector;
    }
    scale
}

/// Object with the replicas of a scale.
///
/// # Errors
/// 422 for replicas that are no count.
pub(crate) fn scaled(place: &Place, object: &Value, scale: &Value) -> Result<Value, Refusal> {
    let replicas = scale["spec"]["replicas"].as_u64();
    let replicas = replicas.ok_or_else(|| Refusal::new(422, "spec.replicas: Invalid value"))?;
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = scale["metadata"]["resourceVersion"].clone();
    let path = path(place, "specReplicasPath").unwrap_or_default();
    let mut target = &mut object;
    for field in path.split('/').skip(1) {
        target = &mut target[field];
    }
    *target = replicas.into();
    Ok(object)
}
