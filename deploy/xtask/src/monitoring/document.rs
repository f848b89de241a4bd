//! Parts of documents in YAML or JSON. A missing part is empty; promtool refuses a file that needs the part.

use serde_json::Value;

/// Items of a list in a document; none if the list is missing.
pub(super) fn items<'a>(document: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    document.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Text at a JSON pointer; empty if it is missing.
pub(super) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
