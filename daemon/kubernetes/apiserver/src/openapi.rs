//! OpenAPI documents, as far as kubectl reads them: which requests validate fields, and no types.

use serde_json::{Value, json};

use crate::resources::{Resource, Served};
use crate::server::State;

/// Media type of the document of version 2 in protobuf. Clients ask for it with an `@`, which they can't
/// parse in an answer.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Document of version 2 without types: kubectl skips the validation of types that it doesn't find there.
/// The message has the fields `swagger`, `info` with `title` and `version`, `paths` and `definitions`.
pub(crate) const VERSION_2: &[u8] = b"\x0a\x032.0\x12\x0b\x0a\x04test\x12\x03v10\x42\x00\x4a\x00";

/// Document of version 3 at a path.
pub(crate) fn version_3(state: &State, path: &str) -> Option<Value> {
    let all = || state.registry.all.iter();
    let Some(group_version) = path.strip_prefix("/openapi/v3/") else {
        let entry = |served: &Served| {
            let root = root(&served.resource);
            (root.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{root}")}))
        };
        let paths: serde_json::Map<String, Value> = all().map(entry).collect();
        return (path == "/openapi/v3").then(|| json!({"paths": paths}));
    };
    let mine = all().filter(|served| root(&served.resource) == group_version);
    let paths: serde_json::Map<String, Value> = mine.map(|served| operations(&served.resource)).collect();
    (!paths.is_empty())
        .then(|| json!({"openapi": "3.0.0", "info": {"title": "test", "version": "v1"}, "paths": paths}))
}

fn root(resource: &Resource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", resource.api_version())
}

/// Path of a resource's objects, with the parameters of its patches.
fn operations(resource: &Resource) -> (String, Value) {
    let Resource { group, version, plural, kind, is_namespaced } = resource;
    let namespace = if *is_namespaced { "namespaces/{namespace}/" } else { "" };
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let patch = json!({
        "parameters": [parameter("dryRun"), parameter("fieldValidation")], "responses": {},
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    });
    (format!("/{}/{namespace}{plural}/{{name}}", root(resource)), json!({"patch": patch}))
}
