//! Documents by which clients find resources.

use serde_json::{Value, json};

use crate::server::State;

/// Document at a path.
pub(crate) fn discovery(state: &State, path: &str) -> Option<Value> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let groups = || {
        let mut groups: Vec<(&str, &str)> = Vec::new();
        for one in &state.resources {
            if !one.group.is_empty() && !groups.contains(&(&one.group, &one.version)) {
                groups.push((&one.group, &one.version));
            }
        }
        let group = |(name, version): (&str, &str)| {
            let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        groups.into_iter().map(group).collect::<Vec<_>>()
    };
    let resources = |group: &str, version: &str| {
        let mine = state.resources.iter().filter(|one| one.group == group && one.version == version);
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let one = mine.clone().next()?.api_version();
        let list: Vec<Value> = mine
            .map(|one| {
                json!({
                    "name": one.plural, "singularName": one.kind.to_lowercase(), "kind": one.kind,
                    "namespaced": one.is_namespaced, "verbs": verbs,
                })
            })
            .collect();
        Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": one, "resources": list}))
    };
    match segments.as_slice() {
        ["version"] => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0-test"})),
        ["readyz" | "livez" | "healthz"] => Some(json!("ok")),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()})),
        ["api", version] => resources("", version),
        ["apis", group, version] => resources(group, version),
        _ => None,
    }
}
