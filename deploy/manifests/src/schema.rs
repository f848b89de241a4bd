//! Structural schemas of Kubernetes, generated from JSON schemas.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

/// Longest pattern of a schema. Patterns of addresses and selectors are longer, and exceed the limits of Go.
const PATTERN_CHARS_MAX: usize = 100;
/// Largest bound of a number that JSON carries exactly.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Columns of the condition that all kinds have.
pub(crate) fn ready_columns() -> Vec<Value> {
    let ready = |name: &str, field: &str| {
        let path = format!(".status.conditions[?(@.type==\"Ready\")].{field}");
        json!({"name": name, "type": "string", "jsonPath": path})
    };
    vec![ready("Ready", "status"), ready("Reason", "reason")]
}

/// Conditions as all objects of Kubernetes have them.
pub(crate) fn conditions(about: &str) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "array",
        "description": about,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": text("Type of the condition."),
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": text("Reason in CamelCase; of a refusal the code of the problem."),
                "message": text("Detail and remedy."),
                "observedGeneration": {"type": "integer", "format": "int64"},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
            },
        },
    })
}

pub(crate) fn named<'a>(schemas: &'a Value, name: &str) -> Result<&'a Value> {
    schemas.get(name).with_context(|| format!("the document has no schema {name}"))
}

/// Schema without references and alternatives.
pub(crate) fn structural(schemas: &Value, schema: &Value) -> Result<Map<String, Value>> {
    let mut words = schema.as_object().context("a schema is no object")?.clone();
    let alternatives = words.remove("anyOf");
    let alternatives = alternatives.as_ref().and_then(Value::as_array).into_iter().flatten();
    // Null means an absent field.
    let other = alternatives.into_iter().find(|one| one["type"] != "null").cloned();
    let reference = words.remove("$ref");
    let target = match &reference {
        Some(reference) => {
            let name = reference.as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
            Some(named(schemas, name)?.clone())
        }
        None => other,
    };
    if let Some(target) = target {
        let mut inner = structural(schemas, &target)?;
        inner.extend(words.remove_entry("description"));
        return Ok(inner);
    }
    let mut kept = Map::new();
    for (word, value) in words {
        let value = match word.as_str() {
            "type" => match value.as_array() {
                Some(kinds) => kinds.iter().find(|kind| *kind != "null").cloned(),
                None => Some(value),
            },
            "pattern" => Some(value).filter(|text| text.as_str().map(str::len) <= Some(PATTERN_CHARS_MAX)),
            "maximum" => Some(value).filter(|most| most.as_f64() <= Some(INTEGER_MAX)),
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields =
                    fields.map(|(name, schema)| Ok((name.clone(), structural(schemas, schema)?.into())));
                Some(Value::Object(fields.collect::<Result<_>>()?))
            }
            "items" => Some(structural(schemas, &value)?.into()),
            "additionalProperties" if value.is_object() => Some(structural(schemas, &value)?.into()),
            "description" | "enum" | "required" | "minimum" | "minItems" | "maxItems" | "minLength"
            | "maxLength" | "maxProperties" => Some(value),
            _ => None,
        };
        kept.extend(value.map(|value| (word, value)));
    }
    Ok(kept)
}

/// Removes fields of a schema.
pub(crate) fn without(schema: &mut Map<String, Value>, fields: &[&str]) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !fields.iter().any(|field| name == field));
    }
}
