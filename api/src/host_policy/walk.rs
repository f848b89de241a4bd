//! Walk over the strings of a desired state.

use serde_json::Value;

use crate::limits::HOST_POLICY_DEPTH_MAX;
use crate::{Code, Family, Problem};

/// Place of a string: the keys and indices above it.
pub(super) type Path = Vec<String>;

/// Function that gets each string with its place, and may return a replacement.
pub(super) type Replace<'a> = dyn FnMut(&[String], &str) -> Result<Option<Value>, Problem> + 'a;

/// JSON pointer of a place in the desired state of a policy.
pub(super) fn pointer(path: &[String]) -> String {
    path.iter().fold("/desired_state".to_owned(), |mut pointer, segment| {
        pointer.push('/');
        pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
        pointer
    })
}

/// Index of the element of `interfaces` that contains a place.
pub(super) fn element(path: &[String]) -> Option<usize> {
    match path {
        [top, index, ..] if top == "interfaces" => index.parse().ok(),
        _ => None,
    }
}

/// Family of the addresses at a place: that of `ipv4` or `ipv6` of its interface.
pub(super) fn family(path: &[String]) -> Option<Family> {
    match path.get(2)?.as_str() {
        "ipv4" => Some(Family::V4),
        "ipv6" => Some(Family::V6),
        _ => None,
    }
}

/// Copies a value. `replace` gets each string that is not a key, and may return a replacement.
///
/// # Errors
/// `limit-exceeded` below [`HOST_POLICY_DEPTH_MAX`] levels; a problem of `replace`.
pub(super) fn copy(value: &Value, replace: &mut Replace<'_>) -> Result<Value, Problem> {
    below(value, &mut Path::new(), replace)
}

fn below(value: &Value, path: &mut Path, replace: &mut Replace<'_>) -> Result<Value, Problem> {
    if path.len() > HOST_POLICY_DEPTH_MAX {
        let detail = format!("the desired state has more than {HOST_POLICY_DEPTH_MAX} levels");
        return Err(Problem::new(Code::LimitExceeded, detail).at(pointer(path)));
    }
    Ok(match value {
        Value::String(text) => replace(path, text)?.unwrap_or_else(|| value.clone()),
        Value::Array(items) => {
            let mut copies = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                copies.push(below(item, path, replace)?);
                path.pop();
            }
            Value::Array(copies)
        }
        Value::Object(fields) => {
            let mut copies = serde_json::Map::new();
            for (key, field) in fields {
                path.push(key.clone());
                copies.insert(key.clone(), below(field, path, replace)?);
                path.pop();
            }
            Value::Object(copies)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}
