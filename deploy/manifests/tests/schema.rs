//! Manifests against the schemas of Kubernetes: by the validator of PyPI, and by the types of k8s-openapi.

use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::{apps, batch, core, policy, rbac};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{KUSTOMIZATIONS, examples, rendered, static_pod};

/// Versions of Kubernetes, the oldest and the newest.
const VERSIONS: [&str; 2] = ["1.33.0", "1.37.0"];

/// All objects that kubectl or a kubelet gets, by their origin.
fn all() -> Vec<(String, Vec<Value>)> {
    let mut all: Vec<(String, Vec<Value>)> =
        KUSTOMIZATIONS.iter().map(|name| ((*name).to_owned(), rendered(name))).collect();
    all.push(("custom-resources".to_owned(), rendered("custom-resources")));
    all.push(("cluster-api".to_owned(), crate::cluster_api::components()));
    all.push(("static-pods".to_owned(), vec![static_pod()]));
    all.extend(examples::objects());
    all.push(("chart".to_owned(), crate::chart::default_output()));
    all
}

/// The validator, which `cargo xtask test --only kubernetes` installs.
fn validator() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    let path = target.join("tools/kubernetes/bin/kubernetes-validate");
    assert!(path.exists(), "{} is missing; first: cargo xtask test --only kubernetes", path.display());
    path
}

/// Runs the validator on objects of its own and returns its complaint.
fn validate(objects: &[Value], version: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("objects.yaml");
    let texts: Vec<String> = objects.iter().map(|object| format!("---\n{object}\n")).collect();
    std::fs::write(&file, texts.concat()).unwrap();
    let output =
        Command::new(validator()).args(["-k", version, "--strict", "--quiet"]).arg(&file).output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if output.status.success() { Ok(()) } else { Err(text) }
}

#[test]
fn h6_12_all_manifests_are_valid_for_the_oldest_and_the_newest_kubernetes() {
    let mut wrong = rendered(".");
    wrong[0]["unknown"] = true.into();
    let mut objects: Vec<Value> = all().into_iter().flat_map(|(_, objects)| objects).collect();
    // Resources of other projects have no schema here.
    objects.retain(|object| object["apiVersion"] != "k8s.cni.cncf.io/v1");
    for version in VERSIONS {
        validate(&wrong, version).expect_err("an unknown field is refused");
        validate(&objects, version).unwrap_or_else(|text| panic!("{version}: {text}"));
    }
}

/// Reads an object into its type and writes it again. An unknown field, which the type leaves out, is then
/// missing.
fn read_strictly<T: DeserializeOwned + Serialize>(object: &Value) -> Result<(), String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    if again == without_nulls(object) { Ok(()) } else { Err(format!("{object}\nbecame\n{again}")) }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// Bounds of numbers as floats, as in the type of schemas.
fn with_floats(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let is_bound = |key: &str| ["minimum", "maximum"].contains(&key);
            let fields = map.iter().map(|(key, value)| match value.as_f64().filter(|_| is_bound(key)) {
                Some(bound) => (key.clone(), bound.into()),
                None => (key.clone(), with_floats(value)),
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(with_floats).collect(),
        other => other.clone(),
    }
}

fn read(object: &Value) -> Result<(), String> {
    match object["kind"].as_str().unwrap() {
        "ClusterRole" => read_strictly::<rbac::v1::ClusterRole>(object),
        "ClusterRoleBinding" => read_strictly::<rbac::v1::ClusterRoleBinding>(object),
        "ConfigMap" => read_strictly::<core::v1::ConfigMap>(object),
        "CronJob" => read_strictly::<batch::v1::CronJob>(object),
        "CustomResourceDefinition" => read_strictly::<CustomResourceDefinition>(&with_floats(object)),
        "DaemonSet" => read_strictly::<apps::v1::DaemonSet>(object),
        "Deployment" => read_strictly::<apps::v1::Deployment>(object),
        "Job" => read_strictly::<batch::v1::Job>(object),
        "Namespace" => read_strictly::<core::v1::Namespace>(object),
        "Pod" => read_strictly::<core::v1::Pod>(object),
        "PodDisruptionBudget" => read_strictly::<policy::v1::PodDisruptionBudget>(object),
        "Role" => read_strictly::<rbac::v1::Role>(object),
        "RoleBinding" => read_strictly::<rbac::v1::RoleBinding>(object),
        "Secret" => read_strictly::<core::v1::Secret>(object),
        "Service" => read_strictly::<core::v1::Service>(object),
        "ServiceAccount" => read_strictly::<core::v1::ServiceAccount>(object),
        "StatefulSet" => read_strictly::<apps::v1::StatefulSet>(object),
        "NetworkAttachmentDefinition" => Ok(()),
        kind => Err(format!("no type for {kind}")),
    }
}

#[test]
fn h6_12_no_manifest_has_a_field_that_the_types_of_kubernetes_lack() {
    for (origin, objects) in all() {
        assert!(!objects.is_empty(), "{origin}");
        for object in objects {
            read(&object).unwrap_or_else(|text| panic!("{origin}: {text}"));
        }
    }
    let mut wrong = static_pod();
    wrong["spec"]["containers"][0]["comand"] = "x".into();
    read(&wrong).expect_err("an unknown field is found");
}
