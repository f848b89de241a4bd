//! Rendered files.

use serde::{Deserialize, Serialize};

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

/// Addresses that a format cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError(pub String);

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RenderError {}
