//! Definitions of the custom resources, made of the OpenAPI document.
//!
//! Their schemas are structural. Long patterns and defaults are left out: the servers know them, and refuse a
//! wrong value with a condition.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::yaml::Holes;

/// Document that a test of the daemon holds to the code.
const OPENAPI: &str = include_str!("../../../api/openapi.json");
const GROUP: &str = "ipamd.internal";
/// Longest pattern of a schema. Those of addresses and selectors are longer, and beyond the limits of Go.
const PATTERN_CHARS_MAX: usize = 100;
/// Largest bound of a number that JSON carries exactly.
const INTEGER_MAX: f64 = 9_007_199_254_740_991.0;
/// Fields of a resource that its object has in its metadata, or that the watcher sets.
const NOT_IN_SPEC: [&str; 4] = ["name", "managed_by", "meta", "status"];
/// Fields of a status that objects show as conditions, or not at all.
const NOT_IN_STATUS: [&str; 3] = ["revision", "application", "conditions"];

/// Kind of custom resources.
struct Kind {
    name: &'static str,
    plural: &'static str,
    short_name: &'static str,
    about: &'static str,
    /// Fields that can't be changed once the resource exists.
    constants: &'static [&'static str],
    /// Field of the status that exists once the resource does.
    applied: &'static str,
    /// Columns by name, type and path.
    columns: &'static [(&'static str, &'static str, &'static str)],
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "Pool",
        plural: "pools",
        short_name: "ipdp",
        about: "Pool of addresses of ipamd. A deleted pool ends when its last address is released.",
        constants: &["subnet"],
        applied: "family",
        columns: &[
            ("Subnet", "string", ".spec.subnet"),
            ("Held", "integer", ".status.counts.allocated"),
            ("Free", "integer", ".status.counts.free"),
        ],
    },
    Kind {
        name: "Reservation",
        plural: "reservations",
        short_name: "ipdr",
        about: "Addresses that no pool of ipamd allocates.",
        constants: &["network"],
        applied: "held",
        columns: &[("Held", "integer", ".status.held")],
    },
    Kind {
        name: "Subnet",
        plural: "subnets",
        short_name: "ipds",
        about: "Subnet of ipamd, from which pools are cut.",
        constants: &["cidr", "network"],
        applied: "family",
        columns: &[
            ("CIDR", "string", ".spec.cidr"),
            ("Pools", "integer", ".status.pools"),
            ("Free", "integer", ".status.counts.free"),
        ],
    },
];

/// Files of the definitions by their names.
///
/// # Errors
/// If the document lacks a schema.
pub fn files() -> Result<BTreeMap<String, String>> {
    let document: Value = serde_json::from_str(OPENAPI)?;
    let schemas = document.pointer("/components/schemas").context("the document has no schemas")?;
    let note = "# Made of api/openapi.json: cargo xtask chart.\n";
    let file = |kind: &Kind| -> Result<(String, String)> {
        let definition = Holes::default().write(&definition(kind, schemas)?);
        Ok((format!("{}.yaml", kind.plural), format!("{note}{definition}")))
    };
    KINDS.iter().map(file).collect()
}

fn definition(kind: &Kind, schemas: &Value) -> Result<Value> {
    let Kind { name, plural, short_name, .. } = kind;
    let ready = |name: &str, field: &str| {
        let path = format!(".status.conditions[?(@.type==\"Ready\")].{field}");
        json!({"name": name, "type": "string", "jsonPath": path})
    };
    let mut columns = vec![ready("Ready", "status"), ready("Reason", "reason")];
    let own = kind.columns.iter();
    columns.extend(own.map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path})));
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "labels": {"app.kubernetes.io/part-of": "ipamd"},
            // A definition that is deleted takes its objects along, and their pools end.
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": name, "listKind": format!("{name}List"), "plural": plural,
                "singular": name.to_lowercase(), "shortNames": [short_name], "categories": ["ipamd"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema(kind, schemas)?},
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
            }],
        },
    }))
}

/// Schema of the objects of a kind.
fn schema(kind: &Kind, schemas: &Value) -> Result<Value> {
    let mut spec = structural(schemas, named(schemas, kind.name)?)?;
    without(&mut spec, &NOT_IN_SPEC);
    spec.insert("description".to_owned(), "Resource of ipamd, without its name.".into());
    let mut status = structural(schemas, named(schemas, &format!("{}Status", kind.name))?)?;
    without(&mut status, &NOT_IN_STATUS);
    // An object that was refused has no resource.
    status.remove("required");
    let fields =
        status.get_mut("properties").and_then(Value::as_object_mut).context("a status has no fields")?;
    fields.insert("conditions".to_owned(), conditions());
    let generation = "Generation of the object that was applied or refused.";
    let generation = json!({"type": "integer", "format": "int64", "description": generation});
    fields.insert("observedGeneration".to_owned(), generation);
    let rules: Vec<Value> = kind.constants.iter().map(|field| rule(field, kind.applied)).collect();
    Ok(json!({
        "type": "object",
        "description": kind.about,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "spec": spec, "status": status,
        },
        "x-kubernetes-validations": rules,
    }))
}

/// Rule that a field stays as it is once the resource exists.
fn rule(field: &str, applied: &str) -> Value {
    let rule = format!(
        "!has(oldSelf.status) || !has(oldSelf.status.{applied}) || !has(oldSelf.spec.{field}) || \
         !has(self.spec.{field}) || self.spec.{field} == oldSelf.spec.{field}"
    );
    json!({"rule": rule, "message": format!("spec.{field} can't be changed: create another object")})
}

/// Conditions as all objects of Kubernetes have them.
fn conditions() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "array",
        "description": "Ready, with a refusal as reason and message, and the conditions of the resource.",
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

fn named<'a>(schemas: &'a Value, name: &str) -> Result<&'a Value> {
    schemas.get(name).with_context(|| format!("the document has no schema {name}"))
}

/// Schema without references and alternatives.
fn structural(schemas: &Value, schema: &Value) -> Result<Map<String, Value>> {
    let mut words = schema.as_object().context("a schema is no object")?.clone();
    let alternatives = words.remove("anyOf");
    let alternatives = alternatives.as_ref().and_then(Value::as_array).into_iter().flatten();
    // Null stands for an absent field.
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
fn without(schema: &mut Map<String, Value>, fields: &[&str]) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !fields.iter().any(|field| name == field));
    }
}
