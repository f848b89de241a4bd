//! `[metrics]`: extent of `/metrics`.

use serde::{Deserialize, Serialize};

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileMetrics {
    /// True if each pool has its own series.
    pub(super) per_pool: Option<bool>,
}

impl FileMetrics {
    /// True if each pool has its own series, which is the default.
    pub(super) fn per_pool(&self) -> bool {
        self.per_pool.unwrap_or(true)
    }
}
