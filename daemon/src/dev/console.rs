//! Errors and progress, as the user reads them.

/// Failure of the demonstration, for its user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DevError(pub String);

impl DevError {
    pub(crate) fn new(what: impl std::fmt::Display, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// Prints a message to standard error, so that standard output has only data.
pub(super) fn say(text: &str) {
    crate::screen::err(&format!("{text}\n"));
}
