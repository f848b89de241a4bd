//! `[journal]`: how long history is kept.

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, wrong};
use crate::tasks::journal::JournalLimits;

/// Default limits: space for about ten million events, and a little more than a year.
const DEFAULT: JournalLimits = JournalLimits { keep_bytes: 2 << 30, keep_days: 400 };
/// Minimum of `keep_bytes`: with less, a briefly disconnected watcher would lose its position.
const KEEP_BYTES_MIN: u64 = 16 << 20;

/// The section of the file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileJournal {
    /// Retained events, in bytes before compression.
    pub(super) keep_bytes: Option<u64>,
    pub(super) keep_days: Option<u64>,
}

impl FileJournal {
    /// Completes and checks the section.
    pub(super) fn complete(&self) -> Result<JournalLimits, ConfigError> {
        let limits = JournalLimits {
            keep_bytes: self.keep_bytes.unwrap_or(DEFAULT.keep_bytes),
            keep_days: self.keep_days.unwrap_or(DEFAULT.keep_days),
        };
        if limits.keep_bytes < KEEP_BYTES_MIN {
            return Err(wrong(
                "journal.keep_bytes",
                &format!("it must be at least {KEEP_BYTES_MIN} (16 MiB)"),
            ));
        }
        if limits.keep_days == 0 {
            return Err(wrong("journal.keep_days", "it must be at least 1"));
        }
        Ok(limits)
    }
}
