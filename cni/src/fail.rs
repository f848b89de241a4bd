//! Failure of an operation: the error object of the CNI specification.

use ipam_api::Problem;
use serde::Serialize;

use crate::version::CniVersion;

/// The configuration's version, or the operation in that version, is not known.
pub const INCOMPATIBLE_VERSION: u16 = 1;
/// An environment variable is missing or wrong.
pub const ENVIRONMENT: u16 = 4;
/// Something can't be read or written.
pub const IO: u16 = 5;
/// Data can't be decoded.
pub const DECODE: u16 = 6;
/// The network configuration is not valid.
pub const CONFIGURATION: u16 = 7;
/// Temporary failure; a repetition can succeed.
pub const TRY_LATER: u16 = 11;
/// STATUS: an ADD can't be served.
pub const NOT_READY: u16 = 50;

/// Failure of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Code of the CNI specification, or of ipamd from 100 on.
    pub code: u16,
    /// Short message.
    pub msg: String,
    /// Sentence with names and numbers, and a remedy.
    pub details: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CniError<'a> {
    cni_version: CniVersion,
    code: u16,
    msg: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    details: &'a str,
}

impl Failure {
    /// Creates a failure from its parts.
    #[must_use]
    pub fn new(code: u16, msg: impl Into<String>, details: impl Into<String>) -> Self {
        Self { code, msg: msg.into(), details: details.into() }
    }

    /// Failure for an invalid network configuration.
    #[must_use]
    pub fn configuration(details: impl Into<String>) -> Self {
        Self::new(CONFIGURATION, "invalid network config", details)
    }

    /// Replaces the code.
    #[must_use]
    pub fn with_code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    /// Formats the failure for standard output.
    #[must_use]
    pub fn to_json(&self, version: CniVersion) -> Vec<u8> {
        let shown =
            CniError { cni_version: version, code: self.code, msg: &self.msg, details: &self.details };
        lines(&shown).unwrap_or_default()
    }
}

/// Keeps the code, sentence and advice of a server's refusal, so that an operator sees the cause.
impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let entry = problem.code.entry();
        let stop = if problem.detail.ends_with(['.', '!', '?']) { "" } else { "." };
        let details = format!("{}: {}{stop} {}", entry.code, problem.detail, problem.help);
        Self::new(entry.cni, entry.title, details)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.details.is_empty() {
            f.write_str(&self.msg)
        } else {
            write!(f, "{}: {}", self.msg, self.details)
        }
    }
}

/// Formats JSON in lines, since people read it after a failure.
///
/// # Errors
/// A type that JSON can't carry.
pub(crate) fn lines(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
