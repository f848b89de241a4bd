//! Definitions of custom resources: generated from the OpenAPI document, and without conflicts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ipam_manifests::{definitions, folder};
use serde_json::Value;

use crate::rendered;

fn place(name: &str) -> PathBuf {
    folder().join("custom-resources").join(name)
}

/// Writes the definitions anew.
pub(crate) fn write() {
    for (name, text) in definitions::files().unwrap() {
        std::fs::write(place(&name), text).unwrap();
    }
}

#[test]
fn the_committed_definitions_are_made_of_the_openapi_document() {
    if std::env::var_os("UPDATE").is_some() {
        write();
    }
    for (name, text) in definitions::files().unwrap() {
        let kept = std::fs::read_to_string(place(&name)).unwrap_or_default();
        assert!(kept == text, "{name} is not what api/openapi.json says; first: cargo xtask chart");
    }
}

fn all() -> Vec<Value> {
    let mut objects = rendered("custom-resources");
    objects.retain(|object| object["kind"] == "CustomResourceDefinition");
    assert_eq!(objects.len(), 5);
    objects
}

#[test]
fn a_spec_is_the_resource_without_its_name_and_manager() {
    let document: Value = serde_json::from_str(&crate::file("api/openapi.json")).unwrap();
    for definition in all() {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        // The fields of these kinds come from another proposal.
        if ["NodeIPPool", "HostPolicy"].contains(&kind) {
            continue;
        }
        let names = |schema: &Value| -> BTreeSet<String> {
            schema["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut expected = names(&document["components"]["schemas"][kind]);
        expected.retain(|name| !["name", "managed_by", "meta", "status"].contains(&name.as_str()));
        assert_eq!(names(spec), expected, "{kind}");
        assert!(spec.to_string().contains("maxItems"), "the bounds are kept");
    }
}

/// Plurals and short names that Kubernetes and common network plug-ins use.
const TAKEN: [&str; 12] =
    ["po", "pods", "ip", "ips", "ippool", "ippools", "subnet", "sp", "ss", "sr", "rs", "pvc"];

#[test]
fn short_names_have_no_conflicts() {
    let all = all();
    let names = all.iter().map(|one| one["spec"]["names"]["shortNames"][0].as_str().unwrap());
    let names: BTreeSet<&str> = names.collect();
    assert!(names.len() == 5 && names.iter().all(|name| !TAKEN.contains(name)));
}
