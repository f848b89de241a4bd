//! Definitions of custom resources.

use regex::Regex;
use serde_json::{Value, json};

use super::cause::{Cause, Reason};
use super::rules::compile_all;
use crate::cluster_api::converts;
use crate::write::object::{finalizers, set_finalizers};

/// Finalizer of a definition that waits for the deletion of its objects.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Checks a definition, and adds its defaults and its status.
///
/// # Errors
/// The wrong fields.
pub(crate) fn accept(definition: &mut Value, present: Option<&Value>, now: &str) -> Result<(), Vec<Cause>> {
    let names = &mut definition["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if names["singular"].is_null() {
        names["singular"] = kind.to_lowercase().into();
    }
    if names["listKind"].is_null() {
        names["listKind"] = format!("{kind}List").into();
    }
    if definition["spec"]["conversion"].is_null() {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    let causes = check(definition, present);
    if !causes.is_empty() {
        return Err(causes);
    }
    let mut holding = finalizers(definition);
    if present.is_none() && !holding.iter().any(|one| one == CLEANUP) {
        holding.push(CLEANUP.to_owned());
        set_finalizers(definition, &holding);
    }
    let known = present.map(|present| present["status"].clone()).unwrap_or_default();
    definition["status"] = status(definition, &known, now);
    Ok(())
}

fn status(definition: &Value, known: &Value, now: &str) -> Value {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
        })
    };
    let conditions = match known["conditions"].as_array() {
        Some(known) => known.clone(),
        None => vec![
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    };
    let mut stored = known["storedVersions"].as_array().cloned().unwrap_or_default();
    let storage = versions(definition).find(|version| version["storage"] == true);
    if let Some(name) = storage.map(|version| version["name"].clone()).filter(|name| !stored.contains(name)) {
        stored.push(name);
    }
    json!({"acceptedNames": definition["spec"]["names"], "conditions": conditions, "storedVersions": stored})
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

fn check(definition: &Value, present: Option<&Value>) -> Vec<Cause> {
    let (spec, mut causes) = (&definition["spec"], Vec::new());
    for field in ["group", "scope"] {
        if spec[field].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::new(Reason::Required, &format!("spec.{field}"), "Required value"));
        }
    }
    for field in ["plural", "kind"] {
        if spec["names"][field].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::new(Reason::Required, &format!("spec.names.{field}"), "Required value"));
        }
    }
    let (plural, group) = (&spec["names"]["plural"], &spec["group"]);
    let name = format!("{}.{}", plural.as_str().unwrap_or_default(), group.as_str().unwrap_or_default());
    if definition["metadata"]["name"] != name.as_str() {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &definition["metadata"]["name"], why));
    }
    if versions(definition).filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
    }
    if spec["conversion"]["strategy"] != "None" && !converts(definition) {
        let why = "Unsupported value: this server converts only by the webhook of Cluster API";
        causes.push(Cause::new(Reason::NotSupported, "spec.conversion.strategy", why));
    }
    if spec["preserveUnknownFields"] == true {
        let why = "must be false in order to use defaults in the schema";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &json!(true), why));
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    // A schema that all versions share has the path that it had in the first version of definitions.
    let is_shared =
        versions(definition).all(|one| Some(schema(one)) == versions(definition).next().map(schema));
    for (index, version) in versions(definition).enumerate().take(if is_shared { 1 } else { usize::MAX }) {
        let parent = if is_shared { "spec.validation" } else { &format!("spec.versions[{index}].schema") };
        let path = format!("{parent}.openAPIV3Schema");
        let schema = &schema(version);
        if schema["type"] != "object" {
            causes.push(Cause::new(
                Reason::Required,
                &format!("{path}.type"),
                "Required value: must be object at the root",
            ));
            continue;
        }
        check_structure(schema, &path, &mut causes);
        causes.extend(compile_all(schema, &path));
    }
    let before = present.map(|present| &present["spec"]);
    for (field, value, old) in [
        ("spec.group", &spec["group"], before.map(|spec| &spec["group"])),
        ("spec.scope", &spec["scope"], before.map(|spec| &spec["scope"])),
        ("spec.names.plural", plural, before.map(|spec| &spec["names"]["plural"])),
    ] {
        if old.is_some_and(|old| old != value) {
            causes.push(Cause::invalid(field, value, "field is immutable"));
        }
    }
    causes
}

/// Finds the parts of a schema that are not structural.
fn check_structure(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let is_open = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    if schema["type"].is_null() && !is_open.iter().any(|field| schema[*field] == true) {
        let why = "Required value: must not be empty for specified object fields";
        causes.push(Cause::new(Reason::Required, &format!("{path}.type"), why));
    }
    if schema["type"] == "array" && !schema["items"].is_object() {
        causes.push(Cause::new(
            Reason::Required,
            &format!("{path}.items"),
            "Required value: must be specified",
        ));
    }
    if let Some(Err(error)) = schema["pattern"].as_str().map(Regex::new) {
        causes.push(Cause::invalid(&format!("{path}.pattern"), &schema["pattern"], error));
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let why = "Forbidden: additionalProperties and properties are mutual exclusive";
        causes.push(Cause::new(Reason::Forbidden, &format!("{path}.additionalProperties"), why));
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            // Alternatives restrict values. Types belong to the structure around them.
            if below["type"].is_string() && schema["x-kubernetes-int-or-string"] != true {
                let why = "Forbidden: must be empty to be structural";
                causes.push(Cause::new(Reason::Forbidden, &format!("{path}.{junctor}[{index}].type"), why));
            }
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        check_structure(property, &format!("{path}.properties[{name}]"), causes);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            check_structure(&schema[below], &format!("{path}.{below}"), causes);
        }
    }
}
