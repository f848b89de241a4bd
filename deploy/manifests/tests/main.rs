//! Checks of the rendered manifests and of the Helm chart. They need the tools of `cargo xtask test --only
//! kubernetes`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod access;
mod chart;
mod cluster_api;
mod containers;
mod definitions;
mod examples;
mod schema;
mod template;

use std::path::Path;

use ipam_manifests::{folder, render};
use serde_json::Value;

/// Folders that kubectl applies.
const KUSTOMIZATIONS: [&str; 7] = [".", "cluster", "outside", "k3s", "microk8s", "talos", "uninstall"];

/// Objects of a folder of the manifests.
fn rendered(name: &str) -> Vec<Value> {
    render(&folder().join(name)).unwrap()
}

/// The only object of a kind and name.
fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found = objects.iter().filter(|one| one["kind"] == kind && one["metadata"]["name"] == name);
    let first = found.next().unwrap_or_else(|| panic!("no {kind} {name}"));
    assert!(found.next().is_none(), "two of {kind} {name}");
    first
}

/// Specification of the pods of an object.
fn pod_spec(object: &Value) -> Option<&Value> {
    match object["kind"].as_str()? {
        "Pod" => Some(&object["spec"]),
        "CronJob" => object.pointer("/spec/jobTemplate/spec/template/spec"),
        "StatefulSet" | "DaemonSet" | "Deployment" | "Job" => object.pointer("/spec/template/spec"),
        _ => None,
    }
}

/// The static pod.
fn static_pod() -> Value {
    let text = std::fs::read_to_string(folder().join("static-pods/ipamd.yaml")).unwrap();
    ipam_manifests::documents(&text).unwrap().remove(0)
}

/// Text of a file of the checkout.
fn file(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}
