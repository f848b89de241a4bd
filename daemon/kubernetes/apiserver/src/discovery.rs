//! Documents by which clients find resources.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resources::{Resource, Served};
use crate::server::State;

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Document at a path.
pub(crate) fn discovery(state: &State, path: &str) -> Option<Value> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["version"] => Some(json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0-test"})),
        ["readyz" | "livez" | "healthz"] => Some(json!("ok")),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["apis"] => {
            let groups: Vec<Value> = versions(state).into_iter().map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let mut group = group(versions(state).remove_entry(*name)?);
            (group["kind"], group["apiVersion"]) = (json!("APIGroup"), json!("v1"));
            Some(group)
        }
        ["api", version] => resources(state, "", version),
        ["apis", group, version] => resources(state, group, version),
        _ => None,
    }
}

/// Versions of each named group, the preferred one first.
fn versions(state: &State) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Served { resource: Resource { group, version, .. }, .. } in &state.registry.all {
        let versions = groups.entry(group).or_default();
        if !versions.contains(&version.as_str()) {
            versions.push(version);
        }
    }
    groups.remove("");
    groups.values_mut().for_each(|versions| versions.sort_by_key(|version| Reverse(priority(version))));
    groups
}

/// Priority of a version: `v2` before `v1`, those before `v1beta1`, and that before `v1alpha1`.
pub(crate) fn priority(version: &str) -> Option<(bool, &str, u32, u32)> {
    let digits = version.strip_prefix('v')?;
    let letters = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (major, rest) = digits.split_at(letters);
    let stage = rest.trim_end_matches(|c: char| c.is_ascii_digit());
    let minor = rest.strip_prefix(stage)?.parse().unwrap_or_default();
    // The names of the stages are in alphabetical order.
    Some((stage.is_empty(), stage, major.parse().ok()?, minor))
}

fn group((name, versions): (&str, Vec<&str>)) -> Value {
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(state: &State, group: &str, version: &str) -> Option<Value> {
    let is_mine = |one: &&Served| one.resource.group == group && one.resource.version == version;
    let mine: Vec<&Served> = state.registry.all.iter().filter(is_mine).collect();
    let api_version = mine.first()?.resource.api_version();
    let list: Vec<Value> = mine.into_iter().flat_map(entries).collect();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": list,
    }))
}

/// Entries of a resource and of its subresources.
fn entries(served: &Served) -> Vec<Value> {
    let Resource { plural, kind, is_namespaced, .. } = &served.resource;
    let names = served.custom.as_ref().map(|custom| &custom.names);
    let singular = names.map_or_else(|| kind.to_lowercase().into(), |names| names["singular"].clone());
    let mut entry = json!({
        "name": plural, "singularName": singular, "kind": kind, "namespaced": is_namespaced, "verbs": VERBS,
    });
    for (field, texts) in [("shortNames", served.short_names()), ("categories", served.categories())] {
        if !texts.is_empty() {
            entry[field] = texts.into();
        }
    }
    let subresource = |name: &str| {
        let mut entry = json!({
            "name": format!("{plural}/{name}"), "singularName": "", "kind": kind, "namespaced": is_namespaced,
            "verbs": ["get", "patch", "update"],
        });
        if name == "scale" {
            (entry["group"], entry["version"], entry["kind"]) =
                (json!("autoscaling"), json!("v1"), json!("Scale"));
        }
        entry
    };
    let subresources = ["status", "scale"].into_iter().filter(|name| served.has(name)).map(subresource);
    std::iter::once(entry).chain(subresources).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_are_preferred() {
        let mut versions = ["v1alpha1", "v1", "v2beta1", "v10", "v2", "v1beta2", "other"];
        versions.sort_by_key(|version| Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "other"]);
    }
}
