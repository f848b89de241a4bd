//! Strategic merge patches of built-in kinds.

use serde_json::{Map, Value};

use super::shape::{List, Shape, identity};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Applies a patch to an object.
pub(crate) fn strategic_merge(target: &mut Value, patch: &Value, shape: Shape<'_>) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() || patch[DIRECTIVE] == "replace" {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    if let Some(retained) = patch[RETAIN].as_array() {
        target.retain(|name, _| retained.iter().any(|one| one == name));
    }
    for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with('$')) {
        if value.is_null() || value[DIRECTIVE] == "delete" {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), value, shape.field(name));
        }
    }
    for (directive, values) in fields {
        let Some(values) = values.as_array() else { continue };
        if let Some(Value::Array(items)) =
            directive.strip_prefix(DELETE).and_then(|name| target.get_mut(name))
        {
            items.retain(|item| !values.contains(item));
        }
        if let Some(name) = directive.strip_prefix(ORDER)
            && let Some(Value::Array(items)) = target.get_mut(name)
        {
            order(items, values, shape.field(name));
        }
    }
}

fn merge(target: &mut Value, patch: &Value, shape: Shape<'_>) {
    let (Value::Array(new), true) = (patch, target.is_array() || patch.is_array()) else {
        return strategic_merge(target, patch, shape);
    };
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(items) = target else { return };
    match shape.list() {
        List::Atomic => *items = new.clone(),
        List::Set => new.iter().for_each(|item| {
            if !items.contains(item) {
                items.push(item.clone());
            }
        }),
        List::Map(keys) => merge_items(items, new, &keys, shape),
    }
}

fn merge_items(items: &mut Vec<Value>, new: &[Value], keys: &[&str], shape: Shape<'_>) {
    if new.iter().any(|item| item[DIRECTIVE] == "replace") {
        items.clear();
    }
    for item in new.iter().filter(|item| item[DIRECTIVE] != "replace") {
        let position = items.iter().position(|one| is_same(one, item, keys));
        match (position, item[DIRECTIVE] == "delete") {
            (Some(index), true) => _ = items.remove(index),
            (Some(index), false) => strategic_merge(&mut items[index], item, shape.items()),
            (None, true) => {}
            (None, false) => {
                let mut added = Value::Null;
                strategic_merge(&mut added, item, shape.items());
                items.push(added);
            }
        }
    }
}

/// Compares the first key alone, as patches do.
fn is_same(one: &Value, other: &Value, keys: &[&str]) -> bool {
    let first = |item: &Value| identity(item, keys).into_iter().find(|(key, _)| key != "protocol");
    first(one) == first(other)
}

fn order(items: &mut [Value], order: &[Value], shape: Shape<'_>) {
    let List::Map(keys) = shape.list() else { return };
    items.sort_by_key(|item| order.iter().position(|one| is_same(one, item, &keys)).unwrap_or(usize::MAX));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_by_keys_and_directives_are_followed() {
        let mut target = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {
            "containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}],
            "volumes": [{"name": "v"}], "strategy": {"type": "x", "rolling": 1}, "tolerations": [1],
        }});
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]},
            "spec": {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [
                    {"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"},
                    {"name": "c", "image": "3"},
                ],
                "volumes": null, "strategy": {"$retainKeys": ["type"], "type": "y"}, "tolerations": [2],
            },
        });
        strategic_merge(&mut target, &patch, Shape::Object(None));
        let expected = json!({"metadata": {"finalizers": ["b", "c"]}, "spec": {
            "containers": [{"name": "c", "image": "3"}, {"name": "a", "image": "2", "args": ["x"]}],
            "strategy": {"type": "y"}, "tolerations": [2],
        }});
        assert_eq!(target, expected);
    }
}
