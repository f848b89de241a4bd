//! Errors of requests to an API server.

use std::time::Duration;

/// Request without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// No answer.
    #[error("the API server doesn't answer: {0}")]
    Unreachable(String),
    /// The API server refuses the request.
    #[error("the API server answers {status} {reason}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// `reason` of the Status object.
        reason: String,
        /// `message` of the Status object, shortened.
        message: String,
        /// Pause that the API server requests.
        retry_after: Option<Duration>,
    },
    /// An answer, or one line of a watch, is longer than this number of bytes.
    #[error("the answer of the API server has more than {0} bytes")]
    TooLong(usize),
    /// The answer has another form.
    #[error("the answer of the API server can't be read: {0}")]
    Unreadable(String),
    /// The token can't be read.
    #[error("the token for the API server can't be read: {0}")]
    Token(String),
}

impl ApiError {
    /// Returns true if the version that a list or watch continues from is no longer available.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: 410, .. })
    }

    /// Returns true if the object doesn't exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Pause that the API server requests.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
