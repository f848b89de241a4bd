//! Position of the journal in the header, and its sealed segments.

use ipam_api::limits::JOURNAL_SEGMENT_AGE_MS_MAX;
use serde::{Deserialize, Serialize};

use crate::value::event_id::EventId;

/// A value of the hash chain: BLAKE3 of the value before and the frame.
pub type Chain = [u8; 32];

/// Position of the journal: the open segment, and the end of the trimmed part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalHead {
    /// The number of the open segment, from 1.
    pub segment: u64,
    /// Contents of the open segment; its ends are the default while it is empty.
    pub open: Segment,
    /// The log time of the open segment's first frame.
    pub opened_log_time_ms: u64,
    /// Newest trimmed event; the default if none was trimmed.
    pub trimmed: EventId,
    /// Newest wall time of the trimmed events.
    pub trimmed_wall_ms: u64,
}

impl Default for JournalHead {
    fn default() -> Self {
        let (trimmed, open) = (EventId::default(), Segment::default());
        Self { segment: 1, open, opened_log_time_ms: 0, trimmed, trimmed_wall_ms: 0 }
    }
}

impl JournalHead {
    /// Returns true if the open segment is to be sealed for its age at this log time.
    #[must_use]
    pub fn is_old(&self, log_time_ms: u64) -> bool {
        let age_ms = log_time_ms.saturating_sub(self.opened_log_time_ms);
        self.open.frames > 0 && age_ms >= JOURNAL_SEGMENT_AGE_MS_MAX
    }
}

/// Segment of the journal: its contents, and the hash that proves them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub first: EventId,
    pub last: EventId,
    pub frames: u64,
    pub events: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Lowest wall time of the events.
    pub from_wall_ms: u64,
    /// Highest wall time of the events.
    pub until_wall_ms: u64,
    /// Value of the chain before the first frame.
    pub before: Chain,
    /// Value of the chain after the last frame.
    pub chain: Chain,
    /// Log time of the last frame, which determines the segment's age: wall clocks may be wrong.
    pub until_log_time_ms: u64,
}

/// Journal operation that the store carries out, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journaled {
    /// Append this frame to the open segment.
    Frame { bytes: Vec<u8>, first: EventId, before: Chain },
    /// Seal the open segment, and begin the next.
    Sealed {
        number: u64,
        /// Contents of the sealed segment.
        segment: Segment,
    },
}
