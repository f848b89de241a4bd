//! Rendered files.

use serde::{Deserialize, Serialize};

/// First line of every file, a comment in all formats.
#[cfg(feature = "render")]
pub(super) const HEADER: &str = "# Rendered by ipamd. The next rendering overwrites changes.\n";

/// Mode of files that only root reads, as netplan and NetworkManager require.
#[cfg(feature = "render")]
pub(super) const PRIVATE: u32 = 0o600;

/// Mode of files that network managers read without being root.
#[cfg(feature = "render")]
pub(super) const PUBLIC: u32 = 0o644;

/// Configuration file for one network manager of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderedFile {
    /// Absolute path at which the network manager reads it.
    pub path: String,
    /// Permission bits, such as `0o600`.
    pub mode: u32,
    /// Content of the file.
    pub content: String,
}

/// Configuration files of a host in one format, as the HTTP API returns them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostConfiguration {
    /// The files, in the order in which the network manager needs them.
    pub files: Vec<RenderedFile>,
    /// Revision of the state that was rendered.
    pub revision: u64,
}

/// Addresses that a format cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError(pub String);

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RenderError {}
