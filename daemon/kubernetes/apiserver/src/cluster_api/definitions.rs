//! Definitions of custom resources.

use serde_json::{Value, json};

use super::conversion::WEBHOOK;
use super::schemas::schema;
use super::versions::{ClusterApi, ClusterApiVersion};

/// Kinds: group, plural, kind.
pub(super) const KINDS: [(&str, &str, &str); 3] = [
    ("ipam.cluster.x-k8s.io", "ipaddressclaims", "IPAddressClaim"),
    ("ipam.cluster.x-k8s.io", "ipaddresses", "IPAddress"),
    ("cluster.x-k8s.io", "clusters", "Cluster"),
];

/// Definitions of all kinds. Both versions are listed, so that objects of a version that is no longer served
/// stay readable.
pub(super) fn definitions(versions: ClusterApi) -> Vec<Value> {
    KINDS.iter().map(|(group, plural, kind)| definition(group, plural, kind, versions)).collect()
}

fn definition(group: &str, plural: &str, kind: &str, versions: ClusterApi) -> Value {
    let version = |version: ClusterApiVersion| {
        let mut entry = json!({
            "name": version.name(), "served": versions.serves(version),
            "storage": versions.storage() == version, "schema": {"openAPIV3Schema": schema(kind, version)},
            "additionalPrinterColumns": columns(kind),
        });
        if version == ClusterApiVersion::V1Beta1 {
            entry["deprecated"] = true.into();
        }
        // Addresses have no status.
        if kind != "IPAddress" {
            entry["subresources"] = json!({"status": {}});
        }
        entry
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {
                "cluster.x-k8s.io/provider": "cluster-api",
                "cluster.x-k8s.io/v1beta1": "v1beta1",
                "cluster.x-k8s.io/v1beta2": "v1beta2",
            },
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"), "categories": ["cluster-api"],
            },
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {
                        "service": {"name": WEBHOOK, "namespace": "capi-system", "path": "/convert"},
                    },
                    "conversionReviewVersions": ["v1"],
                },
            },
            "versions": [version(ClusterApiVersion::V1Beta1), version(ClusterApiVersion::V1Beta2)],
        },
    })
}

/// Columns of a table after the name.
fn columns(kind: &str) -> Value {
    let text = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let mut columns = match kind {
        "IPAddressClaim" => vec![],
        "IPAddress" => vec![text("Address", ".spec.address")],
        _ => vec![text("Phase", ".status.phase")],
    };
    if kind != "Cluster" {
        columns.push(text("Pool Name", ".spec.poolRef.name"));
        columns.push(text("Pool Kind", ".spec.poolRef.kind"));
    }
    columns.push(json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    columns.into()
}
