//! The error of all that reads the configuration.

use ipam_api::tls::TlsError;

/// A configuration that can't be used: what is wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(super) String);

impl From<TlsError> for ConfigError {
    fn from(error: TlsError) -> Self {
        Self(error.to_string())
    }
}

pub(super) fn wrong(key: &str, why: &str) -> ConfigError {
    ConfigError(format!("{key}: {why}"))
}
