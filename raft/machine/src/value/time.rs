//! Time of a log entry.

use serde::{Deserialize, Serialize};

/// Log time, the only time that the rules use, with the labels of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Log time in milliseconds.
    pub log_time_ms: u64,
    /// Wall time in milliseconds since 1970, a label.
    pub wall_ms: u64,
    /// Number of the leadership that proposed the entry.
    pub leadership: u64,
}
