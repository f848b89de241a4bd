//! The log as its readers see it: all appended entries, written or not.

use std::collections::BTreeMap;
use std::ops::Range;

use openraft::EntryPayload;

use crate::types::{Entry, LogId, Payload, Vote};

/// The newest entries and the log's ends, kept in memory. openraft may read an entry as soon as `append` has
/// returned, and must not wait for the disk to do so.
#[derive(Debug, Default)]
pub(super) struct View {
    tail: BTreeMap<u64, Held>,
    tail_bytes: usize,
    tail_bytes_max: usize,
    purged: Option<LogId>,
    last: Option<LogId>,
    /// Number of the last append handed to the log's thread.
    issued: u64,
    /// Number of the last append that the thread has written: from then on it can read the entries itself.
    passed_on: u64,
    pub(super) vote: Option<Vote>,
    pub(super) committed: Option<LogId>,
    /// Reason why nothing can be written any more.
    pub(super) failed: Option<String>,
}

#[derive(Debug)]
struct Held {
    entry: Entry,
    bytes: usize,
    append: u64,
}

/// Entries of a range, by location.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Entries that only the log's thread can read; they come first.
    pub(super) cold: Option<Range<u64>>,
    /// Entries in memory.
    pub(super) hot: Vec<Entry>,
}

impl View {
    pub(super) fn new(tail_bytes_max: usize, purged: Option<LogId>, last: Option<LogId>) -> Self {
        Self { tail_bytes_max, purged, last, ..Self::default() }
    }

    pub(super) fn last(&self) -> Option<LogId> {
        self.last
    }

    pub(super) fn purged(&self) -> Option<LogId> {
        self.purged
    }

    /// Takes entries in, and numbers the append.
    pub(super) fn append(&mut self, entries: &[Entry]) -> u64 {
        self.issued += 1;
        for entry in entries {
            let bytes = payload_size(&entry.payload);
            self.tail_bytes += bytes;
            self.last = Some(entry.log_id);
            let held = Held { entry: entry.clone(), bytes, append: self.issued };
            if let Some(before) = self.tail.insert(entry.log_id.index, held) {
                self.tail_bytes -= before.bytes;
            }
        }
        self.issued
    }

    /// Records an append that the thread has written: old entries are dropped if there are too many.
    pub(super) fn pass_on(&mut self, append: u64) {
        self.passed_on = append;
        while self.tail_bytes > self.tail_bytes_max {
            match self.tail.first_entry() {
                Some(first) if first.get().append <= self.passed_on => {
                    self.tail_bytes -= first.remove().bytes;
                }
                _ => break,
            }
        }
    }

    /// Cuts what comes after `last`; false if nothing does.
    pub(super) fn truncate_after(&mut self, last: Option<LogId>) -> bool {
        let keep = last.max(self.purged);
        if next(keep) >= next(self.last) {
            return false;
        }
        for held in self.tail.split_off(&next(keep)).into_values() {
            self.tail_bytes -= held.bytes;
        }
        self.last = keep;
        true
    }

    /// Forgets all entries up to `upto`; returns false if they are forgotten already.
    pub(super) fn purge(&mut self, upto: LogId) -> bool {
        if Some(upto) <= self.purged {
            return false;
        }
        let kept = self.tail.split_off(&next(Some(upto)));
        for held in std::mem::replace(&mut self.tail, kept).into_values() {
            self.tail_bytes -= held.bytes;
        }
        self.purged = Some(upto);
        self.last = self.last.max(Some(upto));
        true
    }

    /// Finds a range of at most about `bytes_max` bytes in memory, but at least one entry if there is any.
    pub(super) fn find(&self, range: Range<u64>, bytes_max: usize) -> Found {
        let start = range.start.max(next(self.purged));
        let end = range.end.min(next(self.last));
        if start >= end {
            return Found::default();
        }
        let warm = self.tail.first_key_value().map_or(end, |(index, _)| *index).clamp(start, end);
        let mut left = bytes_max;
        let mut hot = Vec::new();
        for held in self.tail.range(warm..end).map(|(_, held)| held) {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(held.bytes);
            hot.push(held.entry.clone());
        }
        Found { cold: (start < warm).then_some(start..warm), hot }
    }
}

/// Index of the entry after this one.
pub(in crate::store) fn next(log_id: Option<LogId>) -> u64 {
    log_id.map_or(0, |log_id| log_id.index.saturating_add(1))
}

/// Returns the approximate size of a payload in memory, in bytes.
pub(in crate::store) fn payload_size(payload: &Payload) -> usize {
    let variable = match payload {
        EntryPayload::Normal(batch) => batch.size(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    };
    size_of::<Entry>() + variable
}
