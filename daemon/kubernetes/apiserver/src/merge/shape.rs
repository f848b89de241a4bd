//! Types of fields, as far as merges depend on them.

use serde_json::{Map, Value};

use crate::path::Place;

/// Type of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// Whole object, with the schema of a custom resource.
    Object(Option<&'a Value>),
    /// Field of a built-in kind, by its name.
    BuiltIn(&'a str),
    Schema(&'a Value),
}

/// Merge of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum List<'a> {
    Atomic,
    Set,
    /// Merged by the keys of its items.
    Map(Vec<&'a str>),
}

/// Lists of built-in kinds whose items have keys. The first key is that of strategic merge patches.
const MAPS: [(&str, &[&str]); 17] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("env", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("resourceClaims", &["name"]),
    // Ports of containers have the first key, and ports of services the second.
    ("ports", &["containerPort", "port", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("conditions", &["type"]),
    ("addresses", &["type"]),
    ("ownerReferences", &["uid"]),
    ("hostAliases", &["ip"]),
    ("podIPs", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
];

const SETS: [&str; 2] = ["finalizers", "podCIDRs"];

/// Maps of built-in kinds that are replaced as a whole.
const ATOMIC: [&str; 7] = [
    "selector",
    "labelSelector",
    "nodeSelector",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
];

impl<'a> Shape<'a> {
    pub(crate) fn of(place: &'a Place) -> Self {
        Self::Object(place.custom.as_ref().map(|custom| custom.schema()))
    }

    pub(super) fn field(self, name: &'a str) -> Self {
        match self {
            Self::Object(Some(schema)) if name != "metadata" => Self::Schema(schema).field(name),
            Self::Object(_) | Self::BuiltIn(_) => Self::BuiltIn(name),
            Self::Schema(schema) => {
                let known = [&schema["properties"][name], &schema["additionalProperties"]];
                Self::Schema(known.into_iter().find(|one| one.is_object()).unwrap_or(&Value::Null))
            }
        }
    }

    pub(super) fn items(self) -> Self {
        match self {
            Self::Schema(schema) => Self::Schema(&schema["items"]),
            other => other,
        }
    }

    pub(super) fn list(self) -> List<'a> {
        match self {
            Self::Object(_) => List::Atomic,
            Self::BuiltIn(name) if SETS.contains(&name) => List::Set,
            Self::BuiltIn(name) => {
                let keys = MAPS.iter().find(|(one, _)| *one == name);
                keys.map_or(List::Atomic, |(_, keys)| List::Map(keys.to_vec()))
            }
            Self::Schema(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => List::Set,
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array();
                    List::Map(keys.into_iter().flatten().filter_map(Value::as_str).collect())
                }
                _ => List::Atomic,
            },
        }
    }

    /// Returns true for a map that is replaced as a whole.
    pub(super) fn is_atomic(self) -> bool {
        match self {
            Self::Object(_) => false,
            Self::BuiltIn(name) => ATOMIC.contains(&name),
            Self::Schema(schema) => schema["x-kubernetes-map-type"] == "atomic",
        }
    }
}

/// Keys of an item. A port without a protocol uses TCP.
pub(super) fn identity(item: &Value, keys: &[&str]) -> Map<String, Value> {
    let own = keys.iter().filter_map(|key| {
        let default = (*key == "protocol").then(|| Value::from("TCP"));
        Some(((*key).to_owned(), item.get(*key).cloned().or(default)?))
    });
    own.collect()
}
