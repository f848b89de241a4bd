//! Pruning: removal of fields that a structural schema doesn't have.

use serde_json::Value;

/// Removes the unknown fields of an object, and returns their paths.
pub(super) fn prune(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(object, schema, "", &mut unknown);
    unknown
}

fn prune_at(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_resource = path.is_empty() || schema["x-kubernetes-embedded-resource"] == true;
            let additional = &schema["additionalProperties"];
            let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true || *additional == true;
            fields.retain(|name, value| {
                if is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                    return true;
                }
                let path = super::version::child(path, name);
                match [&schema["properties"][name], additional].into_iter().find(|one| one.is_object()) {
                    Some(schema) => prune_at(value, schema, &path, unknown),
                    None if keeps_unknown => {}
                    None => {
                        unknown.push(path);
                        return false;
                    }
                }
                true
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(item, &schema["items"], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}
