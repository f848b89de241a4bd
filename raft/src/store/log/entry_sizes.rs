//! Bytes of the log between two entries.
//!
//! The log knows how many bytes were ever written to it, and which entry was the last one then. Samples of
//! both, about one per [`STEP_BYTES`], locate each entry accurately enough.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::directory::Durable;
use crate::types::LogId;

/// Distance between two marks.
const STEP_BYTES: u64 = 1 << 20;

/// Handle on the log's length.
pub(crate) struct EntrySizes {
    durable: Arc<Durable>,
    pub(crate) marks: Marks,
}

impl EntrySizes {
    /// Creates the handle. `begin` is the first byte that the log still has, `purged` the entry before it.
    pub(in crate::store) fn new(durable: Arc<Durable>, begin: u64, purged: Option<LogId>) -> Self {
        let mut marks = Marks::default();
        marks.note(purged.map_or(0, |purged| purged.index), begin);
        Self { durable, marks }
    }

    /// Adds a mark for the current end of the log.
    pub(crate) fn look(&mut self) {
        let log = self.durable.log();
        if let Some(last) = log.last {
            self.marks.note(last.index, log.end);
        }
    }
}

/// Entries and the positions of their ends, both ascending; the last mark is the end of the log. Never empty
/// once a mark is noted.
#[derive(Debug, Default)]
pub(crate) struct Marks(VecDeque<(u64, u64)>);

impl Marks {
    fn note(&mut self, index: u64, byte: u64) {
        // Entries that were cut off may be written again, at another position.
        while self.0.len() > 1 && self.0.back().is_some_and(|(last, _)| *last >= index) {
            self.0.pop_back();
        }
        // The newest mark moves along until it is far enough from the mark before it.
        if let [.., (_, before), _] = *self.0.make_contiguous()
            && byte.saturating_sub(before) < STEP_BYTES
        {
            self.0.pop_back();
        }
        self.0.push_back((index, byte));
    }

    /// Bytes written up to an entry.
    pub(crate) fn byte_at(&self, index: u64) -> u64 {
        let ((from, from_byte), (to, to_byte)) = self.around(|(at, _)| *at <= index);
        let entries = index.min(to).saturating_sub(from);
        from_byte + share(entries, to - from, to_byte.saturating_sub(from_byte))
    }

    /// The last entry that ends before a byte.
    pub(crate) fn index_at(&self, byte: u64) -> u64 {
        let ((from, from_byte), (to, to_byte)) = self.around(|(_, at)| *at <= byte);
        let bytes = byte.min(to_byte).saturating_sub(from_byte);
        from + share(bytes, to_byte - from_byte, to.saturating_sub(from))
    }

    /// The two marks around a place.
    fn around(&self, is_before: impl Fn(&(u64, u64)) -> bool) -> ((u64, u64), (u64, u64)) {
        let after = self.0.partition_point(is_before).clamp(1, self.0.len().max(2) - 1);
        let from = self.0.get(after - 1).copied().unwrap_or_default();
        (from, self.0.get(after).copied().unwrap_or(from))
    }

    /// Drops the positions of purged entries.
    pub(crate) fn forget(&mut self, purged: u64) {
        while self.0.len() > 2 && self.0.get(1).is_some_and(|(index, _)| *index <= purged) {
            self.0.pop_front();
        }
    }
}

/// Returns the part of `whole` that corresponds to `part` of `of`.
fn share(part: u64, of: u64, whole: u64) -> u64 {
    let share = u128::from(part) * u128::from(whole) / u128::from(of.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_where_they_were_seen_and_guessed_between() {
        let mut marks = Marks::default();
        assert_eq!((marks.byte_at(5), marks.index_at(5)), (0, 0));
        marks.note(100, 1000);
        assert_eq!((marks.byte_at(500), marks.index_at(5000)), (1000, 100), "nothing was written yet");
        // For entries of an earlier run, only the positions of both ends are known.
        marks.note(300, 1000 + 2 * STEP_BYTES);
        assert_eq!(marks.byte_at(200), 1000 + STEP_BYTES);
        assert_eq!(marks.index_at(1000 + STEP_BYTES), 200);
        // Large entries are distinguished from small ones.
        marks.note(310, 1000 + 12 * STEP_BYTES);
        assert_eq!(marks.byte_at(305), 1000 + 7 * STEP_BYTES);
        assert_eq!(marks.byte_at(310), 1000 + 12 * STEP_BYTES);
        assert_eq!(marks.byte_at(9999), 1000 + 12 * STEP_BYTES);
        assert_eq!(marks.index_at(1000 + 2 * STEP_BYTES), 300);
        // Adding in small steps takes no more memory than at once.
        for more in 1..5000 {
            marks.note(310 + more, 1000 + 12 * STEP_BYTES + more * 1024);
        }
        assert!(marks.0.len() < 10, "{marks:?}");
        assert_eq!(marks.byte_at(310 + 2048), 1000 + 14 * STEP_BYTES);
        // After a truncation entries are written again: bytes only ever increase.
        marks.note(305, 1000 + 20 * STEP_BYTES);
        assert_eq!(marks.byte_at(305), 1000 + 20 * STEP_BYTES);
        marks.forget(300);
        assert_eq!(marks.0.front(), Some(&(300, 1000 + 2 * STEP_BYTES)));
        assert_eq!(marks.byte_at(5), 1000 + 2 * STEP_BYTES, "what is gone counts as before all");
    }
}
