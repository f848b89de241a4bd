//! Request of a client, and its answer.

use std::fmt::Write as _;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::number_in;
use crate::brand::{HEADER_IDEMPOTENCY_KEY, HEADER_REVISION};
use crate::name::shown;
use crate::{Code, Problem};

/// Request that a client sends.
#[derive(Debug, Clone)]
pub struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    pub(super) expect: Expect,
    pub(super) repeatable: bool,
    pub(super) is_slow: bool,
    pub(super) deadline: Duration,
}

/// Precondition of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// No precondition.
    Anything,
    /// The object doesn't exist yet (`If-None-Match: *`).
    Absent,
    /// The object has this revision (`If-Match`).
    Revision(u64),
}

impl Call {
    /// A read. `path` begins with a slash.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), true)
    }

    /// Write that the servers can't recognise: it is not repeated once it may have been received.
    #[must_use]
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path.into(), false)
    }

    /// Idempotent write of a complete value.
    #[must_use]
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path.into(), true)
    }

    /// A change of some fields (RFC 7396), not repeated once it may have been received.
    #[must_use]
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path.into(), false)
    }

    /// A removal, not repeated once it may have been received (the second answer would be `not-found`).
    #[must_use]
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), false)
    }

    fn new(method: Method, path: String, repeatable: bool) -> Self {
        let deadline = Duration::from_millis(crate::limits::BUDGET_MS_DEFAULT);
        let headers = HeaderMap::new();
        Self {
            method,
            path,
            headers,
            body: None,
            expect: Expect::Anything,
            repeatable,
            is_slow: false,
            deadline,
        }
    }

    /// Sends `body` as JSON.
    ///
    /// # Errors
    /// `internal`, for a type that JSON can't carry.
    pub fn json(mut self, body: &impl Serialize) -> Result<Self, Problem> {
        let body =
            serde_json::to_vec(body).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        self.body = Some(body);
        Ok(self)
    }

    /// Adds a header; replaces an earlier one of the same name.
    ///
    /// # Errors
    /// `invalid-field` for an invalid name or value, such as a value with a line break.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Problem> {
        let wrong =
            || Problem::new(Code::InvalidField, format!("{} can't be sent in a header", shown(value)));
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn query(mut self, key: &str, value: &str) -> Self {
        self.path = with_query(&self.path, key, value);
        self
    }

    /// Sets the precondition of the write.
    #[must_use]
    pub fn expect(mut self, expect: Expect) -> Self {
        // If the first attempt was applied, its change makes the precondition of a repetition fail.
        self.repeatable &= expect == Expect::Anything || self.method == Method::GET;
        self.expect = expect;
        self
    }

    /// Marks a write as repeatable: its body names an identity (an attachment, a claim), so a repetition has
    /// no second effect.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Marks a call with a slow answer (a dry run, a large transaction). Each server gets the longest
    /// timeout.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// The path with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Time limit of all attempts.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Body of the request, if any.
    #[must_use]
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Headers of the call: the precondition, the media type of the body, and the added ones.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let condition = match self.expect {
            Expect::Anything => None,
            Expect::Absent => Some((IF_NONE_MATCH, "*".to_owned())),
            Expect::Revision(revision) => Some((IF_MATCH, format!("\"{revision}\""))),
        };
        let media_type = self.body.as_ref().map(|_| (CONTENT_TYPE, self.media_type().to_owned()));
        let named = self.headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let known = condition.into_iter().chain(media_type).map(|(name, value)| (name.to_string(), value));
        known.chain(named).collect()
    }

    /// Returns true with an `Idempotency-Key`: all copies of the request get one answer.
    pub(super) fn has_key(&self) -> bool {
        self.headers.contains_key(HEADER_IDEMPOTENCY_KEY)
    }

    /// Media type of the body.
    pub(super) fn media_type(&self) -> &'static str {
        if self.method == Method::PATCH { "application/merge-patch+json" } else { "application/json" }
    }

    /// Limits the total time of all attempts.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// Appends a query parameter to a path.
#[must_use]
pub fn with_query(path: &str, key: &str, value: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut query = format!("{path}{separator}{key}=");
    push_encoded(&mut query, value);
    query
}

/// Appends a text to a URL, percent-encoded except for unreserved characters (RFC 3986).
pub fn push_encoded(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

/// Response other than a problem.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Revision of the answer's state, if present.
    pub revision: Option<u64>,
    /// Revision in the `ETag`, if present.
    pub etag: Option<u64>,
    headers: HeaderMap,
}

impl Answer {
    /// Creates an answer; the revision and the `ETag` are read from the headers.
    #[must_use]
    pub fn new(status: u16, headers: HeaderMap, body: Vec<u8>) -> Self {
        let revision = number_in(&headers, HEADER_REVISION);
        let etag = number_in(&headers, ETAG.as_str());
        Self { status, body, revision, etag, headers }
    }

    /// Value of a header, if it is text; the first of several.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()
    }

    /// Reads the body, ignoring fields that this version doesn't know.
    ///
    /// # Errors
    /// `unreachable`, if the body has another form: the server is then probably not ipamd.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Problem::new(Code::Unreachable, format!("the server's answer can't be read: {error}"))
                .help("Check that the address is ipamd's and that its version fits.")
        })
    }
}
