//! The API's JSON, byte for byte, except for lists of several pages, which are joined here.

use serde_json::value::RawValue;

/// Joins items, as the server wrote them, to a list.
pub(crate) fn joined(items: &[Box<RawValue>], revision: u64) -> Vec<u8> {
    let items: Vec<&str> = items.iter().map(|item| item.get()).collect();
    format!("{{\"items\":[{}],\"revision\":{revision}}}", items.join(",")).into_bytes()
}
