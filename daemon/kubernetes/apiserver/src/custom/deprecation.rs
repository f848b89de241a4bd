//! Warnings about deprecated versions.

use serde_json::Value;

use crate::discovery::priority;
use crate::resources::Resource;

/// Warning with the answers of a deprecated version.
pub(super) fn deprecation(version: &Value, resource: &Resource, all: &[Value]) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(own.to_owned());
    }
    let Resource { group, kind, .. } = resource;
    let is_current = |other: &&Value| other["served"] == true && other["deprecated"] != true;
    let names = all.iter().filter(is_current).filter_map(|other| other["name"].as_str());
    let other =
        names.filter(|name| priority(name) > priority(&resource.version)).max_by_key(|name| priority(name));
    let other = other.map(|name| format!("; use {group}/{name} {kind}")).unwrap_or_default();
    Some(format!("{} {kind} is deprecated{other}", resource.api_version()))
}
