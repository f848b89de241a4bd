//! The API's JSON, byte for byte. Only a list that came in pages is put together here.

use serde_json::value::RawValue;

/// A list out of items that the server wrote.
pub(crate) fn joined(items: &[Box<RawValue>], revision: u64) -> Vec<u8> {
    let items: Vec<&str> = items.iter().map(|item| item.get()).collect();
    format!("{{\"items\":[{}],\"revision\":{revision}}}", items.join(",")).into_bytes()
}
