//! The committed chart: up to date, limited to its actions, and equal to kustomize by default.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ipam_manifests::{chart, documents};
use serde_json::{Value, json};

use crate::rendered;
use crate::template::evaluate;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../helm/ipamd")
}

/// Files of a folder and those below, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            files.extend(
                self::files(&entry.path()).into_iter().map(|(path, text)| (format!("{name}/{path}"), text)),
            );
        } else {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn the_committed_chart_is_made_of_the_manifests() {
    if std::env::var_os("UPDATE").is_some() {
        crate::definitions::write();
        crate::cluster_api::write();
    }
    let custom = rendered("custom-resources");
    let made = chart::files(&rendered("."), &custom, env!("CARGO_PKG_VERSION")).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        fs::remove_dir_all(folder()).ok();
        for (path, text) in &made {
            let path = folder().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    let kept = files(&folder());
    let changed: Vec<&String> = made.keys().filter(|path| kept.get(*path) != made.get(*path)).collect();
    let surplus: Vec<&String> = kept.keys().filter(|path| !made.contains_key(*path)).collect();
    assert!(changed.is_empty() && surplus.is_empty(), "{changed:?} {surplus:?}; first: cargo xtask chart");
}

/// Output of the chart, with changes of its default values by their pointers.
fn output(changes: &[(&str, Value)]) -> Vec<Value> {
    let files = files(&folder());
    let mut values = documents(&files["values.yaml"]).unwrap().remove(0);
    for (pointer, value) in changes {
        *values.pointer_mut(pointer).unwrap_or_else(|| panic!("values.yaml has no {pointer}")) =
            value.clone();
    }
    let templates = files.iter().filter(|(path, _)| path.starts_with("templates/"));
    let texts: Vec<String> = templates.map(|(_, text)| format!("---\n{}", evaluate(text, &values))).collect();
    documents(&texts.concat()).unwrap()
}

pub(crate) fn default_output() -> Vec<Value> {
    output(&[])
}

/// An object with its volumes in the order of their names, which has no meaning.
pub(crate) fn sorted(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Array(volumes)) = object.pointer_mut("/spec/template/spec/volumes") {
        volumes.sort_by_key(|volume| volume["name"].as_str().map(str::to_owned));
    }
    object
}

#[track_caller]
fn assert_equal(chart: &[Value], kustomize: &[Value]) {
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    let names = |objects: &[Value]| objects.iter().map(name).collect::<Vec<_>>();
    assert_eq!(names(chart), names(kustomize));
    for (one, other) in chart.iter().zip(kustomize) {
        assert!(sorted(one) == sorted(other), "{one:#}\n\n{other:#}");
    }
}

#[test]
fn h6_12_the_default_output_of_the_chart_is_that_of_kustomize() {
    assert_equal(&default_output(), &rendered("."));
}

#[test]
fn the_paths_of_the_chart_are_those_of_the_distributions() {
    let changes = [
        ("/agents/cniBinDir", json!("/var/lib/rancher/k3s/data/cni")),
        ("/agents/cniConfDir", json!("/var/lib/rancher/k3s/agent/etc/cni/net.d")),
    ];
    assert_equal(&output(&changes), &rendered("k3s"));
}

/// The objects without the ConfigMap of the agent, whose name has the hash of its content and whose comments
/// differ.
fn without_settings(mut objects: Vec<Value>) -> Vec<Value> {
    objects.retain(|object| object["kind"] != "ConfigMap");
    for object in &mut objects {
        let volumes = object.pointer_mut("/spec/template/spec/volumes").and_then(Value::as_array_mut);
        volumes.into_iter().flatten().filter(|volume| volume["name"] == "config").for_each(|volume| {
            volume["configMap"]["name"] = "settings".into();
        });
    }
    objects
}

#[test]
fn without_members_the_chart_is_the_deployment_of_agents() {
    let servers = ["n1", "n2", "n3"].map(|name| format!("https://{name}.ipam.example:7440"));
    let changes =
        [("/members/enabled", json!(false)), ("/realm", json!("prod-eu")), ("/servers", json!(servers))];
    let chart = output(&changes);
    let settings = chart.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let settings: toml::Table = toml::from_str(settings["data"]["agent.toml"].as_str().unwrap()).unwrap();
    let kustomize = rendered("outside");
    let other = kustomize.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let other: toml::Table = toml::from_str(other["data"]["agent.toml"].as_str().unwrap()).unwrap();
    assert_eq!(settings, other);
    assert_equal(&without_settings(chart), &without_settings(kustomize));
}

#[test]
fn custom_resources_are_off_by_default() {
    let objects = output(&[("/customResources", json!(true))]);
    let (custom, others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(|object| {
        let is_of_definitions = object["kind"] == "CustomResourceDefinition";
        is_of_definitions || object["metadata"]["name"] == "ipamd-custom-resources"
    });
    assert_equal(&custom, &rendered("custom-resources"));
    let settings = |objects: &[Value]| {
        let found = objects.iter().find_map(|object| object["data"]["ipamd.toml"].as_str());
        toml::from_str::<toml::Table>(found.unwrap()).unwrap()["kubernetes"][0].clone()
    };
    assert_eq!(settings(&others)["custom_resources"].as_bool(), Some(true));
    assert!(settings(&default_output()).get("custom_resources").is_none());
    let outside = output(&[("/customResources", json!(true)), ("/members/enabled", json!(false))]);
    assert!(!outside.iter().any(|object| object["metadata"]["name"] == "ipamd-custom-resources"));
}

#[test]
fn values_reach_their_places() {
    let changes = [
        ("/namespace", json!("addresses")),
        ("/servers", json!(["https://ipamd-0.ipamd.addresses.svc:7440"])),
        ("/image", json!("registry.example/ipamd:1.2.3")),
        ("/members/storageClass", json!("local")),
        ("/members/storageSize", json!("2Gi")),
        ("/members/nodeSelector", json!({"disk": "true"})),
        ("/agents/nodeSelector", json!({"a": "b"})),
        ("/members/createSecrets", json!(false)),
    ];
    let objects = output(&changes);
    let text = serde_json::to_string(&objects).unwrap();
    assert!(!text.contains("ipamd-system") && !text.contains("ipamd:0.1.0"), "{text}");
    assert!(!text.contains("ipamd-secrets"));
    let find = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    let claim = &find("StatefulSet")["spec"]["volumeClaimTemplates"][0]["spec"];
    assert_eq!(claim["storageClassName"], "local");
    assert_eq!(claim["resources"]["requests"]["storage"], "2Gi");
    assert_eq!(find("StatefulSet")["spec"]["template"]["spec"]["nodeSelector"], json!({"disk": "true"}));
    assert_eq!(find("DaemonSet")["spec"]["template"]["spec"]["nodeSelector"], json!({"a": "b"}));
    assert!(text.contains("ipamd-0.ipamd.addresses.svc:7441"));
}
