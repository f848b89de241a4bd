//! Cursor of the next page: opaque, bounded, and valid for one list of one state only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipam_api::{Code, Problem};

/// First byte of a cursor: the version of its format.
const VERSION: u8 = 1;
/// Length of a cursor before encoding, in bytes.
const BYTES: usize = 1 + 3 * 8;

/// Cursor of the next page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The state that all pages are from.
    pub(super) revision: u64,
    /// Hash of the list and its query.
    pub(super) query: u64,
    /// Id of the last item; for a sorted list, the number of items before the page.
    pub(super) position: u64,
}

impl Cursor {
    pub(super) fn encode(self) -> String {
        let mut bytes = vec![VERSION];
        for part in [self.revision, self.query, self.position] {
            bytes.extend(part.to_be_bytes());
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn decode(text: &str) -> Result<Self, Problem> {
        let read = || {
            // Decode only a short text, which bounds the work.
            let bytes = (text.len() <= 2 * BYTES).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten()?;
            let (version, rest) = bytes.split_first()?;
            let mut parts = rest.chunks_exact(8).map(|part| part.try_into().map(u64::from_be_bytes));
            let mut part = || parts.next()?.ok();
            let cursor = Self { revision: part()?, query: part()?, position: part()? };
            (*version == VERSION && bytes.len() == BYTES).then_some(cursor)
        };
        read().ok_or_else(|| Problem::new(Code::InvalidCursor, "the cursor is malformed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went_and_nothing_else_is_one() {
        let cursor = Cursor { revision: 7, query: u64::MAX, position: 0 };
        let text = cursor.encode();
        assert_eq!(Cursor::decode(&text).unwrap(), cursor);
        let newer = URL_SAFE_NO_PAD.encode([2; BYTES]);
        let long = "A".repeat(100_000);
        for bad in ["", "x", "..", &text[1..], &format!("{text}AA"), &newer, &long] {
            assert_eq!(Cursor::decode(bad).unwrap_err().code, Code::InvalidCursor, "{bad:.40}");
        }
    }
}
