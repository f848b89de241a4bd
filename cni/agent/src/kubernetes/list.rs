//! Envelopes of objects: lists and the events of watches.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ApiError;
use super::bounded::First;

/// One page of a list, with at most `N` items.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct List<T, const N: usize> {
    /// Version and continuation.
    pub metadata: ListMetadata,
    /// The objects.
    #[serde(default)]
    pub items: First<T, N>,
}

/// Metadata of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMetadata {
    /// Version from which a watch continues.
    pub resource_version: String,
    /// Token for the next page; empty on the last one.
    #[serde(rename = "continue")]
    pub next: String,
}

/// Line of a watch.
#[derive(Debug, Deserialize)]
pub struct WatchEvent<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The object, or a Status.
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Status object: the form of an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

/// Characters of a message that are kept.
const MESSAGE_CHARS_MAX: usize = 256;

impl Status {
    pub(super) fn refusal(self, status: u16, retry_after: Option<std::time::Duration>) -> ApiError {
        let short = |text: Option<String>| text.unwrap_or_default().chars().take(MESSAGE_CHARS_MAX).collect();
        ApiError::Refused { status, reason: short(self.reason), message: short(self.message), retry_after }
    }
}

impl<'a> WatchEvent<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// The error that the line reports, or `Unreadable`.
    pub fn read(line: &'a [u8]) -> Result<Self, ApiError> {
        let event: Self = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if event.kind == "ERROR" {
            let status: Status = event.object()?;
            let code = status.code;
            return Err(status.refusal(code, None));
        }
        Ok(event)
    }

    /// Reads the object.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn object<T: Deserialize<'a>>(&self) -> Result<T, ApiError> {
        serde_json::from_str(self.object.get()).map_err(|error| unreadable(&error))
    }
}

pub(super) fn unreadable(error: &serde_json::Error) -> ApiError {
    // Serde's message contains a part of the input, so it is truncated.
    ApiError::Unreadable(error.to_string().chars().take(MESSAGE_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_object_or_an_error() {
        let line = br#"{"object":{"code":410,"reason":"Expired","message":"too old"},"type":"ERROR"}"#;
        let error = WatchEvent::read(line).unwrap_err();
        assert!(error.is_gone() && error.to_string().ends_with("410 Expired: too old"), "{error}");
        let event = WatchEvent::read(br#"{"type":"ADDED","object":{"a":[1]}}"#).unwrap();
        assert_eq!(event.kind, "ADDED");
        assert_eq!(event.object::<serde_json::Value>().unwrap()["a"][0], 1);
        for line in ["", "7", "{}", r#"{"type":"ADDED"}"#, r#"{"type":7,"object":{}}"#] {
            let error = WatchEvent::read(line.as_bytes()).unwrap_err();
            assert!(matches!(error, ApiError::Unreadable(_)), "{line}: {error}");
        }
    }

    #[test]
    fn the_message_of_an_error_is_bounded() {
        let line = format!(r#"{{"type":"ERROR","object":{{"message":"{}"}}}}"#, "x".repeat(100_000));
        assert!(WatchEvent::read(line.as_bytes()).unwrap_err().to_string().len() < 400);
        let line = format!(r#"{{"type":"ADDED","object":{{"{}":}}"#, "x".repeat(100_000));
        assert!(WatchEvent::read(line.as_bytes()).unwrap_err().to_string().len() < 400);
    }
}
