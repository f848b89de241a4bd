//! Validation rules of a schema in CEL (`x-kubernetes-validations`).

use std::sync::Arc;

use cel::objects::Map;
use cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::cause::{Cause, Reason};
use super::version::{child, keys};

/// Causes for which a value breaks the rules of its schema. Rules with `oldSelf` need the value before.
pub(super) fn check_rules(value: &Value, old: Option<&Value>, schema: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(value, old, schema, "", &mut causes);
    causes
}

/// Causes for rules of a schema that don't compile.
pub(super) fn compile_all(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, rule) in rules(schema).enumerate() {
        if let Err(error) = Program::compile(text(rule, "rule")) {
            let why = format!("compilation failed: {error}");
            causes.push(Cause::invalid(
                &format!("{path}.x-kubernetes-validations[{index}].rule"),
                &rule["rule"],
                why,
            ));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        causes.extend(compile_all(property, &format!("{path}.properties[{name}]")));
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            causes.extend(compile_all(&schema[below], &format!("{path}.{below}")));
        }
    }
    causes
}

fn rules(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten()
}

fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule[field].as_str().unwrap_or_default()
}

fn check(value: &Value, old: Option<&Value>, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    causes.extend(rules(schema).filter_map(|rule| broken(rule, value, old, path)));
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let known = [&schema["properties"][name], &schema["additionalProperties"]];
                if let Some(schema) = known.into_iter().find(|one| one.is_object()) {
                    let old = old.and_then(|old| old.get(name)).filter(|old| !old.is_null());
                    check(value, old, schema, &child(path, name), causes);
                }
            }
        }
        Value::Array(items) => {
            let is_map = schema["x-kubernetes-list-type"] == "map";
            for (index, item) in items.iter().enumerate() {
                // Items of other lists have no identity, and so no state before.
                let is_same = |old: &&Value| is_map && keys(old, schema) == keys(item, schema);
                let old = old.and_then(Value::as_array).and_then(|old| old.iter().find(is_same));
                check(item, old, &schema["items"], &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}

/// Cause, if a value breaks a rule.
fn broken(rule: &Value, value: &Value, old: Option<&Value>, path: &str) -> Option<Cause> {
    let source = text(rule, "rule");
    let program = Program::compile(source).ok()?;
    if program.references().has_variable("oldSelf") && old.is_none() {
        return None;
    }
    let mut context = Context::default();
    context.add_variable_from_value("self", converted(value));
    context.add_variable_from_value("oldSelf", old.map_or(Cel::Null, converted));
    let message = match program.execute(&context) {
        Ok(Cel::Bool(true)) => return None,
        Ok(_) => match (text(rule, "message"), text(rule, "messageExpression")) {
            ("", "") => format!("failed rule: {source}"),
            ("", expression) => match Program::compile(expression).map(|program| program.execute(&context)) {
                Ok(Ok(Cel::String(message))) => message.to_string(),
                _ => format!("failed rule: {source}"),
            },
            (message, _) => message.to_owned(),
        },
        Err(error) => format!("rule evaluation error: {error}"),
    };
    let field = format!("{path}{}", text(rule, "fieldPath"));
    let reason = match text(rule, "reason") {
        "FieldValueForbidden" => {
            return Some(Cause::new(Reason::Forbidden, &field, format!("Forbidden: {message}")));
        }
        "FieldValueRequired" => Reason::Required,
        "FieldValueDuplicate" => Reason::Duplicate,
        _ => return Some(Cause::invalid(&field, value, message)),
    };
    Some(Cause::new(reason, &field, message))
}

/// Converts a value to CEL. All integers become signed integers.
fn converted(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cel::Int(number),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(converted).collect::<Vec<_>>().into(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone().into(), converted(value)));
            Cel::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}
