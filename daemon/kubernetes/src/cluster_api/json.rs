//! Fields of JSON that may be missing.

use serde_json::Value;

/// Value at a pointer (RFC 6901); null if there is none.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Takes the value of a field out of an object; null if there is none.
pub(crate) fn take(value: &mut Value, field: &str) -> Value {
    value.get_mut(field).map(Value::take).unwrap_or_default()
}
