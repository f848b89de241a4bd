//! Defaults of a structural schema.

use serde_json::Value;

/// Adds the defaults of absent fields, and of null ones that may not be null.
pub(super) fn add_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_absent = match fields.get(name) {
                    Some(value) => value.is_null() && property["nullable"] != true,
                    None => true,
                };
                if let (true, Some(default)) = (is_absent, property.get("default")) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                let known = [&schema["properties"][name], &schema["additionalProperties"]];
                if let Some(schema) = known.into_iter().find(|one| one.is_object()) {
                    add_defaults(value, schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| add_defaults(item, &schema["items"])),
        _ => {}
    }
}
