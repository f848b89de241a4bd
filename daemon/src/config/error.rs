//! Error of reading and checking the configuration.

use ipam_api::tls::TlsError;

/// Configuration that can't be used. The message names the mistake and a correction.
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
