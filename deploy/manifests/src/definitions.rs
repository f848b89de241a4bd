//! Definitions of the custom resources, generated from the OpenAPI document.
//!
//! Their schemas are structural. Long patterns and defaults are left out: the servers check values, and
//! refuse a wrong value with a condition.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::nmstate;
use crate::schema::{conditions, named, ready_columns, structural, without};
use crate::yaml::Holes;

/// OpenAPI document, which a test of the daemon compares with the code.
const OPENAPI: &str = include_str!("../../../api/openapi.json");
const GROUP: &str = "ipamd.internal";
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
    let written = nmstate::KINDS.iter().map(|kind| {
        let names = Names { kind: kind.name, plural: kind.plural, short_name: kind.short_name };
        let definition = Holes::default().write(&names.definition(&nmstate::versions(kind)));
        Ok((format!("{}.yaml", kind.plural), format!("# Generated: cargo xtask chart.\n{definition}")))
    });
    KINDS.iter().map(file).chain(written).collect()
}

/// Names of a kind.
struct Names {
    kind: &'static str,
    plural: &'static str,
    short_name: &'static str,
}

impl Names {
    fn definition(&self, versions: &Value) -> Value {
        let Self { kind, plural, short_name } = self;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{GROUP}"),
                "labels": {"app.kubernetes.io/part-of": "ipamd"},
                // The deletion of a definition would delete its objects, and with them their pools.
                "annotations": {"helm.sh/resource-policy": "keep"},
            },
            "spec": {
                "group": GROUP,
                "scope": "Cluster",
                "names": {
                    "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                    "singular": kind.to_lowercase(), "shortNames": [short_name], "categories": ["ipamd"],
                },
                "versions": versions,
            },
        })
    }
}

fn definition(kind: &Kind, schemas: &Value) -> Result<Value> {
    let Kind { name, plural, short_name, .. } = kind;
    let mut columns = ready_columns();
    let own = kind.columns.iter();
    columns.extend(own.map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path})));
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    let versions = json!([{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema(kind, schemas)?},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }]);
    Ok(Names { kind: name, plural, short_name }.definition(&versions))
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
    let about = "Ready, with a refusal as reason and message, and the conditions of the resource.";
    fields.insert("conditions".to_owned(), conditions(about));
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

/// Rule that makes a field immutable once the resource exists.
fn rule(field: &str, applied: &str) -> Value {
    let rule = format!(
        "!has(oldSelf.status) || !has(oldSelf.status.{applied}) || !has(oldSelf.spec.{field}) || \
         !has(self.spec.{field}) || self.spec.{field} == oldSelf.spec.{field}"
    );
    json!({"rule": rule, "message": format!("spec.{field} can't be changed: create another object")})
}
