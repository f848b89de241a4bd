//! Schemas of the kinds in both versions.

use serde_json::{Value, json};

use super::versions::ClusterApiVersion;

const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const KIND: &str = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const CONDITION: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
);

/// Schema of the objects of a kind.
pub(super) fn schema(kind: &str, version: ClusterApiVersion) -> Value {
    match (kind, version) {
        ("IPAddressClaim", ClusterApiVersion::V1Beta1) => root(&[
            ("spec", object(&["poolRef"], json!({"clusterName": text(1, 63), "poolRef": typed_reference()}))),
            ("status", claim_status_v1beta1()),
        ]),
        ("IPAddressClaim", ClusterApiVersion::V1Beta2) => required(root(&[
            ("spec", object(&["poolRef"], json!({"clusterName": text(1, 63), "poolRef": pool_reference()}))),
            ("status", claim_status_v1beta2()),
        ])),
        ("IPAddress", ClusterApiVersion::V1Beta1) => {
            root(&[("spec", address(json!({"type": "integer"}), local_reference(), typed_reference()))])
        }
        ("IPAddress", ClusterApiVersion::V1Beta2) => required(root(&[(
            "spec",
            address(
                json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 128}),
                object(&["name"], json!({"name": matching(SUBDOMAIN, 253)})),
                pool_reference(),
            ),
        )])),
        (_, version) => root(&[
            ("spec", open(json!({"paused": {"type": "boolean"}}))),
            ("status", cluster_status(version)),
        ]),
    }
}

fn root(fields: &[(&str, Value)]) -> Value {
    let mut schema = object(&[], json!({"metadata": {"type": "object"}}));
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = json!({"type": "string"});
    }
    for (name, field) in fields {
        schema["properties"][name] = field.clone();
    }
    schema
}

/// Schema of objects that need a spec.
fn required(mut root: Value) -> Value {
    root["required"] = json!(["spec"]);
    root
}

fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Schema of an object with further fields that it does not list.
fn open(properties: Value) -> Value {
    let mut schema = object(&[], properties);
    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    schema
}

fn text(min: u32, max: u32) -> Value {
    json!({"type": "string", "minLength": min, "maxLength": max})
}

fn matching(pattern: &str, max: u32) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "pattern": pattern})
}

/// `TypedLocalObjectReference` of Kubernetes.
fn typed_reference() -> Value {
    let properties =
        json!({"apiGroup": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}});
    let mut reference = object(&["kind", "name"], properties);
    reference["x-kubernetes-map-type"] = "atomic".into();
    reference
}

/// `LocalObjectReference` of Kubernetes.
fn local_reference() -> Value {
    let mut reference = object(&[], json!({"name": {"type": "string", "default": ""}}));
    reference["x-kubernetes-map-type"] = "atomic".into();
    reference
}

fn pool_reference() -> Value {
    object(
        &["apiGroup", "kind", "name"],
        json!({
            "apiGroup": matching(SUBDOMAIN, 253), "kind": matching(KIND, 63),
            "name": matching(SUBDOMAIN, 253),
        }),
    )
}

fn address(prefix: Value, claim: Value, pool: Value) -> Value {
    object(
        &["address", "claimRef", "poolRef", "prefix"],
        json!({
            "address": text(1, 39), "prefix": prefix, "gateway": text(1, 39), "claimRef": claim,
            "poolRef": pool,
        }),
    )
}

fn claim_status_v1beta1() -> Value {
    object(
        &[],
        json!({
            "addressRef": local_reference(),
            "conditions": legacy_conditions(),
            "v1beta2": object(&[], json!({"conditions": conditions()})),
        }),
    )
}

fn claim_status_v1beta2() -> Value {
    let mut status = object(
        &[],
        json!({
            "addressRef": object(&["name"], json!({"name": matching(SUBDOMAIN, 253)})),
            "conditions": conditions(),
            "deprecated": deprecated(),
        }),
    );
    status["minProperties"] = 1.into();
    status
}

fn cluster_status(version: ClusterApiVersion) -> Value {
    let properties = match version {
        ClusterApiVersion::V1Beta1 => json!({
            "conditions": legacy_conditions(),
            "v1beta2": open(json!({"conditions": conditions()})),
        }),
        ClusterApiVersion::V1Beta2 => json!({"conditions": conditions(), "deprecated": deprecated()}),
    };
    open(properties)
}

fn deprecated() -> Value {
    object(&[], json!({"v1beta1": object(&[], json!({"conditions": legacy_conditions()}))}))
}

/// Conditions of Cluster API before `v1beta2`.
fn legacy_conditions() -> Value {
    let properties = json!({
        "type": text(1, 256), "status": {"type": "string"}, "reason": text(1, 256), "message": text(1, 10240),
        "severity": {"type": "string", "maxLength": 32},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    });
    json!({"type": "array", "items": object(&["lastTransitionTime", "status", "type"], properties)})
}

/// Conditions of Kubernetes.
fn conditions() -> Value {
    let properties = json!({
        "type": {"type": "string", "maxLength": 316, "pattern": CONDITION},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": matching(REASON, 1024),
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    });
    let required = ["lastTransitionTime", "message", "reason", "status", "type"];
    json!({
        "type": "array", "items": object(&required, properties), "maxItems": 32,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    })
}
