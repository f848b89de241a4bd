//! Managers of fields (`metadata.managedFields`).

use serde_json::{Value, json};

use super::paths::{Paths, fields_v1, from_fields_v1, paths_of, value_at};
use super::shape::Shape;

/// Fields of the metadata that belong to the server.
const UNMANAGED: [&str; 11] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "selfLink",
    "managedFields",
];

/// Manager with its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) name: String,
    pub(super) is_apply: bool,
    pub(super) subresource: String,
    pub(super) api_version: String,
    pub(super) time: String,
    pub(super) paths: Paths,
}

impl Manager {
    fn read(entry: &Value) -> Self {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        Self {
            name: text("manager"),
            is_apply: entry["operation"] == "Apply",
            subresource: text("subresource"),
            api_version: text("apiVersion"),
            time: text("time"),
            paths: from_fields_v1(&entry["fieldsV1"]),
        }
    }

    fn entry(&self) -> Value {
        let mut entry = json!({
            "manager": self.name, "operation": if self.is_apply { "Apply" } else { "Update" },
            "apiVersion": self.api_version, "time": self.time, "fieldsType": "FieldsV1",
            "fieldsV1": fields_v1(&self.paths),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.as_str().into();
        }
        entry
    }

    /// Returns true for the same manager, regardless of its fields.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.is_apply == other.is_apply && self.subresource == other.subresource
    }
}

pub(super) fn managers(object: &Value) -> Vec<Manager> {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().map(Manager::read).collect()
}

/// Writes the managers that have fields.
pub(super) fn set_managers(object: &mut Value, mut managers: Vec<Manager>) {
    managers.retain(|manager| !manager.paths.is_empty());
    managers.sort_by_key(|one| (!one.is_apply, one.time.clone(), one.name.clone(), one.subresource.clone()));
    if managers.is_empty() {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
    } else {
        object["metadata"]["managedFields"] = managers.iter().map(Manager::entry).collect();
    }
}

/// Object without the fields that have no managers.
pub(super) fn managed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !UNMANAGED.contains(&field.as_str()));
    }
    let is_bare = object["metadata"].as_object().is_none_or(serde_json::Map::is_empty);
    if let Some(fields) = object.as_object_mut() {
        fields
            .retain(|field, _| field != "apiVersion" && field != "kind" && !(is_bare && field == "metadata"));
    }
    object
}

/// Gives the fields that a write has changed to its manager.
pub(super) fn give(
    managers: &mut Vec<Manager>,
    mut mine: Manager,
    before: &Value,
    after: &Value,
    shape: Shape<'_>,
) {
    let (old, new) = (paths_of(before, shape), paths_of(after, shape));
    let is_leaf =
        |path: &&Vec<String>| !new.iter().any(|one| one.len() > path.len() && one.starts_with(path));
    let changed = |path: &&Vec<String>| match value_at(before, path) {
        Some(value) => is_leaf(path) && value_at(after, path) != Some(value),
        None => true,
    };
    let changed: Paths = new.iter().filter(changed).cloned().collect();
    let removed: Paths = old.difference(&new).cloned().collect();
    for manager in managers.iter_mut() {
        let is_mine = manager.is(&mine);
        manager.paths.retain(|path| !removed.contains(path) && (is_mine || !changed.contains(path)));
    }
    if changed.is_empty() {
        return;
    }
    mine.paths = changed;
    match managers.iter_mut().find(|one| one.is(&mine)) {
        Some(known) => {
            let count = known.paths.len();
            known.paths.append(&mut mine.paths);
            (known.api_version, known.time) = match count == known.paths.len() {
                true => (known.api_version.clone(), known.time.clone()),
                false => (mine.api_version, mine.time),
            };
        }
        None => managers.push(mine),
    }
}

/// Records an update, or a creation if there is no object before it.
pub(crate) fn record(
    before: Option<&Value>,
    after: &mut Value,
    (name, subresource, now): (&str, &str, &str),
    shape: Shape<'_>,
) {
    let mut all = before.map(managers).unwrap_or_default();
    let is_reset = |fields: &Vec<Value>| fields.iter().all(|one| *one == json!({}));
    let is_reset = after["metadata"]["managedFields"].as_array().is_some_and(is_reset);
    // An object without managers has none until its first apply.
    if before.is_some() && (all.is_empty() || is_reset) {
        return set_managers(after, Vec::new());
    }
    let mine = Manager {
        name: name.to_owned(),
        is_apply: false,
        subresource: subresource.to_owned(),
        api_version: after["apiVersion"].as_str().unwrap_or_default().to_owned(),
        time: now.to_owned(),
        paths: Paths::new(),
    };
    let empty = json!({});
    let before = before.map_or(empty, managed);
    give(&mut all, mine, &before, &managed(after), shape);
    set_managers(after, all);
}
