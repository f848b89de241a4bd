//! Positions of the entries' records in the log's files, by index.

use std::collections::VecDeque;
use std::ops::Range;

use super::record::Record;
use super::view::next;

/// Positions of consecutive entries.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Index of the first entry.
    first: u64,
    places: VecDeque<Place>,
}

/// Position of one record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its first byte in the whole log.
    pub(super) begin: u64,
    /// Its length.
    pub(super) bytes: u32,
}

impl Places {
    /// Updates the positions for a record at a position.
    pub(super) fn note(&mut self, record: &Record, at: Range<u64>) {
        match record {
            Record::Append(entry) => {
                if self.places.is_empty() {
                    self.first = entry.log_id.index;
                }
                let bytes = u32::try_from(at.end - at.start).unwrap_or(u32::MAX);
                self.places.push_back(Place { begin: at.start, bytes });
            }
            Record::TruncateAfter(keep) => self.places.truncate(self.count_before(next(*keep))),
            Record::PurgeUpto(upto) => {
                let gone = self.count_before(next(Some(*upto)));
                self.places.drain(..gone);
                self.first += gone as u64;
            }
            Record::Vote(_) | Record::Commit(_) | Record::Checkpoint(_) | Record::Synced(_) => {}
        }
    }

    /// Index of the first entry.
    pub(super) fn first(&self) -> Option<u64> {
        (!self.places.is_empty()).then_some(self.first)
    }

    /// Entries of a range, with their indices.
    pub(super) fn range(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Place)> {
        let (from, to) = (self.count_before(range.start), self.count_before(range.end));
        let indices = range.start.max(self.first)..;
        indices.zip(self.places.range(from..to.max(from)).copied())
    }

    /// Number of the entries before an index.
    fn count_before(&self, index: u64) -> usize {
        let count = usize::try_from(index.saturating_sub(self.first)).unwrap_or(usize::MAX);
        count.min(self.places.len())
    }
}
