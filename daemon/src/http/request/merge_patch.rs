//! JSON merge patch (RFC 7396).

use serde_json::{Map, Value};

/// Applies a merge patch (RFC 7396): null removes, objects are merged, everything else replaces.
pub(in crate::http) fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, wanted) in patch {
        match wanted {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(inner) => {
                let mut present = match target.remove(&key) {
                    Some(Value::Object(present)) => present,
                    _ => Map::new(),
                };
                merge(&mut present, inner);
                target.insert(key, Value::Object(present));
            }
            other => {
                target.insert(key, other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Examples of the RFC's appendix whose targets and patches are objects.
    #[test]
    fn patches_merge_as_the_rfc_says() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let (Value::Object(mut target), Value::Object(patch)) = (target, patch) else { unreachable!() };
            merge(&mut target, patch);
            assert_eq!(Value::Object(target), expected);
        }
    }
}
