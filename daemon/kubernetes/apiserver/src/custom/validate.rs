//! Validation by a structural schema.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use super::cause::{Cause, Reason};
use super::version::{child, keys};

/// Causes for which a value doesn't fit a schema.
pub(super) fn validate(value: &Value, schema: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(value, schema, "", &mut causes);
    causes
}

fn check(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(expected) = wrong_type(value, schema) {
        let why = format!("Invalid value: {:?}: {path} in body must be of type {expected}", type_of(value));
        return causes.push(Cause::new(Reason::TypeInvalid, path, why));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        let allowed = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        let why = format!("Unsupported value: {value}: supported values: {allowed}");
        causes.push(Cause::new(Reason::NotSupported, path, why));
    }
    match value {
        Value::String(text) => check_text(text, schema, path, causes),
        Value::Number(number) => check_number(number.as_f64().unwrap_or_default(), schema, path, causes),
        Value::Array(items) => check_items(items, schema, path, causes),
        Value::Object(_) => check_fields(value, schema, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    check_logic(value, schema, path, causes);
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Type that the value should have and doesn't.
fn wrong_type<'a>(value: &Value, schema: &'a Value) -> Option<&'a str> {
    let actual = type_of(value);
    if schema["x-kubernetes-int-or-string"] == true {
        return (!["integer", "string"].contains(&actual)).then_some("integer,string");
    }
    let expected = schema["type"].as_str()?;
    let fits = match expected {
        "number" => ["integer", "number"].contains(&actual),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => expected == actual,
    };
    (!fits).then_some(expected)
}

fn check_text(text: &str, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let (value, count) = (Value::from(text), text.chars().count() as u64);
    if let Some(max) = schema["maxLength"].as_u64().filter(|max| count > *max) {
        let why = format!("Too long: may not be more than {max} bytes");
        causes.push(Cause::new(Reason::TooLong, path, why));
    }
    if let Some(min) = schema["minLength"].as_u64().filter(|min| count < *min) {
        let why = format!("{path} in body should be at least {min} chars long");
        causes.push(Cause::invalid(path, &value, why));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !matches(pattern, text)
    {
        causes.push(Cause::invalid(path, &value, format!("{path} in body should match '{pattern}'")));
    }
    let has_format = match schema["format"].as_str() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("ipv4") => text.parse::<Ipv4Addr>().is_ok(),
        Some("ipv6") => text.parse::<Ipv6Addr>().is_ok(),
        _ => true,
    };
    if !has_format {
        let why = format!("{path} in body must be of type {}", schema["format"].as_str().unwrap_or_default());
        causes.push(Cause::invalid(path, &value, why));
    }
}

/// Returns true if a text matches a pattern. Patterns are compiled once.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.contains_key(pattern) {
        compiled.insert(pattern.to_owned(), Regex::new(pattern).ok());
    }
    compiled[pattern].as_ref().is_none_or(|regex| regex.is_match(text))
}

fn check_number(number: f64, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let value = Value::from(number);
    let (is_above, is_below) = (schema["exclusiveMinimum"] == true, schema["exclusiveMaximum"] == true);
    if let Some(min) = schema["minimum"].as_f64().filter(|min| number < *min || is_above && number == *min) {
        let than = if is_above { "greater than" } else { "greater than or equal to" };
        causes.push(Cause::invalid(path, &value, format!("{path} in body should be {than} {min}")));
    }
    if let Some(max) = schema["maximum"].as_f64().filter(|max| number > *max || is_below && number == *max) {
        let than = if is_below { "less than" } else { "less than or equal to" };
        causes.push(Cause::invalid(path, &value, format!("{path} in body should be {than} {max}")));
    }
    if let Some(of) = schema["multipleOf"].as_f64().filter(|of| (number / of).fract() != 0.0) {
        causes.push(Cause::invalid(path, &value, format!("{path} in body should be a multiple of {of}")));
    }
}

fn check_items(items: &[Value], schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let count = items.len() as u64;
    if let Some(max) = schema["maxItems"].as_u64().filter(|max| count > *max) {
        let why = format!("Too many: {count}: must have at most {max} items");
        causes.push(Cause::new(Reason::TooMany, path, why));
    }
    if let Some(min) = schema["minItems"].as_u64().filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} items");
        causes.push(Cause::invalid(path, &Value::from(count), why));
    }
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.clone()),
        Some("map") => Some(keys(item, schema)),
        _ => None,
    };
    let identities: Vec<Option<Value>> = items.iter().map(identity).collect();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if let Some(Some(own)) = identities.get(index)
            && identities[..index].contains(&Some(own.clone()))
        {
            causes.push(Cause::new(Reason::Duplicate, &path, format!("Duplicate value: {own}")));
        }
        check(item, &schema["items"], &path, causes);
    }
}

fn check_fields(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            causes.push(Cause::new(Reason::Required, &child(path, name), "Required value"));
        }
    }
    let fields = value.as_object();
    let count = fields.map_or(0, serde_json::Map::len) as u64;
    if let Some(max) = schema["maxProperties"].as_u64().filter(|max| count > *max) {
        let why = format!("Too many: {count}: must have at most {max} items");
        causes.push(Cause::new(Reason::TooMany, path, why));
    }
    if let Some(min) = schema["minProperties"].as_u64().filter(|min| count < *min) {
        let why = format!("{path} in body should have at least {min} properties");
        causes.push(Cause::invalid(path, &Value::from(count), why));
    }
    for (name, value) in fields.into_iter().flatten() {
        let known = [&schema["properties"][name], &schema["additionalProperties"]];
        // The server itself validates the metadata.
        let is_metadata = path.is_empty() && name == "metadata";
        if let (Some(schema), false) = (known.into_iter().find(|one| one.is_object()), is_metadata) {
            check(value, schema, &child(path, name), causes);
        }
    }
}

fn check_logic(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let failures = |schema: &Value| {
        let mut causes = Vec::new();
        check(value, schema, path, &mut causes);
        causes
    };
    for one in schema["allOf"].as_array().into_iter().flatten() {
        causes.extend(failures(one));
    }
    let fitting = |all: &[Value]| all.iter().filter(|one| failures(one).is_empty()).count();
    if schema["anyOf"].as_array().is_some_and(|all| fitting(all) == 0) {
        causes.push(Cause::invalid(path, value, "must validate at least one schema (anyOf)"));
    }
    if schema["oneOf"].as_array().is_some_and(|all| fitting(all) != 1) {
        causes.push(Cause::invalid(path, value, "must validate one and only one schema (oneOf)"));
    }
    if schema["not"].is_object() && failures(&schema["not"]).is_empty() {
        causes.push(Cause::invalid(path, value, "must not validate the schema (not)"));
    }
}
