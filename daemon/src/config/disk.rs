//! `[disk]`: free space below which the disk counts as full.

use ipam_raft::node::DiskLimits;
use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};

/// Minimum of `low_bytes`: with less free space, writes in progress would fail.
const LOW_BYTES_MIN: u64 = 1 << 20;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDisk {
    /// Free bytes below which writes that need more space are refused.
    pub(super) low_bytes: Option<u64>,
    /// Size in bytes of the ballast file, which reserves disk space for the daemon's own needs.
    pub(super) ballast_bytes: Option<u64>,
}

impl FileDisk {
    /// Completes and checks the section.
    pub(super) fn complete(&self) -> Result<DiskLimits, ConfigError> {
        let default = DiskLimits::default();
        let limits = DiskLimits {
            low_bytes: self.low_bytes.unwrap_or(default.low_bytes),
            ballast_bytes: self.ballast_bytes.unwrap_or(default.ballast_bytes),
        };
        if limits.low_bytes < LOW_BYTES_MIN {
            return Err(wrong("disk.low_bytes", &format!("it must be at least {LOW_BYTES_MIN} (1 MiB)")));
        }
        Ok(limits)
    }
}
