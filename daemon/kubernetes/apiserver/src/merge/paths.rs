//! Sets of fields, as `fieldsV1` of managed fields has them.
//!
//! The elements of a path are `f:` with the name of a field, `k:` with the keys of an item of a list, and
//! `v:` with the value of an item of a set.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::shape::{List, Shape, identity};

pub(super) type Path = Vec<String>;
pub(super) type Paths = BTreeSet<Path>;

/// Fields of an object.
pub(super) fn paths_of(object: &Value, shape: Shape<'_>) -> Paths {
    let mut paths = Paths::new();
    collect(object, shape, &mut Vec::new(), &mut paths);
    // An object without fields has no paths, not even the root.
    paths.remove(&Vec::new());
    paths
}

fn collect(value: &Value, shape: Shape<'_>, path: &mut Path, paths: &mut Paths) {
    let mut below = |element: String, value: &Value, shape: Shape<'_>| {
        path.push(element);
        collect(value, shape, path, paths);
        path.pop();
    };
    match (value, shape.list()) {
        (Value::Object(fields), _) if !fields.is_empty() && !shape.is_atomic() => {
            for (name, value) in fields {
                below(format!("f:{name}"), value, shape.field(name));
            }
        }
        (Value::Array(items), List::Set) if !items.is_empty() => {
            for item in items {
                path.push(format!("v:{item}"));
                paths.insert(path.clone());
                path.pop();
            }
        }
        (Value::Array(items), List::Map(keys)) if !items.is_empty() => {
            for item in items {
                path.push(key_element(item, &keys));
                // The item itself belongs to a manager, too.
                paths.insert(path.clone());
                collect(item, shape.items(), path, paths);
                path.pop();
            }
        }
        _ => _ = paths.insert(path.clone()),
    }
}

pub(super) fn key_element(item: &Value, keys: &[&str]) -> String {
    format!("k:{}", Value::Object(identity(item, keys)))
}

/// Keys of a path element; none for an element without keys.
pub(super) fn element_keys(element: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(element.strip_prefix("k:")?).ok()
}

fn is_item(item: &Value, keys: &Map<String, Value>) -> bool {
    let names: Vec<&str> = keys.keys().map(String::as_str).collect();
    identity(item, &names) == *keys
}

/// Value at a path.
pub(super) fn value_at(object: &Value, path: &[String]) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else { return Some(object.clone()) };
    if let Some(name) = first.strip_prefix("f:") {
        return value_at(object.get(name)?, rest);
    }
    let mut items = object.as_array()?.iter();
    if let Some(keys) = element_keys(first) {
        return value_at(items.find(|item| is_item(item, &keys))?, rest);
    }
    items.find(|item| format!("v:{item}") == *first).cloned()
}

/// Removes the value at a path, with the fields that this leaves empty.
pub(super) fn remove_at(object: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    match (object, first.strip_prefix("f:")) {
        (Value::Object(fields), Some(name)) => {
            if !rest.is_empty()
                && let Some(value) = fields.get_mut(name)
            {
                let was_empty = is_empty(value);
                remove_at(value, rest);
                if was_empty || !is_empty(value) {
                    return;
                }
            }
            fields.remove(name);
        }
        (Value::Array(items), None) => match element_keys(first) {
            Some(keys) if rest.is_empty() => items.retain(|item| !is_item(item, &keys)),
            Some(keys) => {
                items.iter_mut().filter(|item| is_item(item, &keys)).for_each(|item| remove_at(item, rest))
            }
            None => items.retain(|item| format!("v:{item}") != *first),
        },
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Set as `fieldsV1`.
pub(super) fn fields_v1(paths: &Paths) -> Value {
    let mut root = json!({});
    for path in paths {
        let mut node = &mut root;
        for (index, element) in path.iter().enumerate() {
            // A path of the set that has deeper paths is marked, since it isn't a leaf of the tree.
            if index > 0 && paths.contains(&path[..index]) {
                node["."] = json!({});
            }
            node = &mut node[element];
        }
        if node.is_null() {
            *node = json!({});
        }
    }
    root
}

/// Set that `fieldsV1` contains.
pub(super) fn from_fields_v1(fields: &Value) -> Paths {
    let mut paths = Paths::new();
    read(fields, &mut Vec::new(), &mut paths);
    paths
}

fn read(node: &Value, path: &mut Path, paths: &mut Paths) {
    for (element, below) in node.as_object().into_iter().flatten() {
        if element == "." {
            paths.insert(path.clone());
            continue;
        }
        path.push(element.clone());
        if is_empty(below) {
            paths.insert(path.clone());
        }
        read(below, path, paths);
        path.pop();
    }
}

/// Path as a conflict names it.
pub(super) fn shown(path: &[String]) -> String {
    let element = |element: &String| match (element.strip_prefix("f:"), element_keys(element)) {
        (Some(name), _) => format!(".{name}"),
        (None, Some(keys)) => {
            let keys = keys.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
            format!("[{}]", keys.join(","))
        }
        (None, None) => format!("[={}]", element.trim_start_matches("v:")),
    };
    path.iter().map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 80}], "args": ["a", "b"]}],
                "nodeSelector": {"k": "v"}, "empty": {},
            },
        })
    }

    #[test]
    fn fields_are_written_as_a_tree_and_read_again() {
        let paths = paths_of(&pod(), Shape::Object(None));
        let expected = json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:name": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:containerPort": {},
                    }},
                }},
                "f:nodeSelector": {}, "f:empty": {},
            },
        });
        assert_eq!(fields_v1(&paths), expected);
        assert_eq!(from_fields_v1(&expected), paths);
        for path in &paths {
            assert!(value_at(&pod(), path).is_some(), "{}", shown(path));
        }
    }

    #[test]
    fn removal_takes_objects_that_become_empty() {
        let mut object = pod();
        for path in paths_of(&pod(), Shape::Object(None)) {
            remove_at(&mut object, &path);
        }
        assert_eq!(object, json!({}));
    }
}
