//! Opening of the log, with a distinction between torn writes and damage.
//!
//! The last file ends with zeros. A crash leaves at most one unfinished write before them, of unacknowledged
//! records, which is cut off. Everything else that can't be read is damage. An end before the marker's
//! position is damage too, even if it is clean, because acknowledged records are missing.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files::{Closed, LogFile, LogFiles, PAGE_BYTES, list};
use super::places::Places;
use super::record::Record;
use super::state::LogState;
use super::view::next;
use crate::simulation;
use crate::store::directory::{LogMark, Marker, StoreError, disk};

/// The open log, and the position that it reaches.
pub(in crate::store) struct Opened {
    pub(in crate::store) files: LogFiles,
    pub(in crate::store) mark: LogMark,
}

pub(in crate::store) fn path(dir: &Path) -> PathBuf {
    dir.join("log")
}

/// Opens the log of a data directory. `same_boot` is true if the machine hasn't been rebooted since the
/// marker was written.
pub(in crate::store) fn open(dir: &Path, marker: &Marker, same_boot: bool) -> Result<Opened, StoreError> {
    let dir = path(dir);
    disk::create_dir(&dir).map_err(StoreError::io(&dir))?;
    let mut reading = Reading::default();
    let found = list(&dir).map_err(StoreError::io(&dir))?;
    let newest = found.len().saturating_sub(1);
    for (number, (begin, path)) in found.into_iter().enumerate() {
        let content = fs::read(&path).map_err(StoreError::io(&path))?;
        let file = LogFile::open(path, begin).map_err(StoreError::io(&dir))?;
        let read = reading.read(file, &content).map_err(|what| StoreError::damaged(&dir, what))?;
        let Some(unread) = read else { continue };
        if number < newest {
            // This file was synced before the next one was created, so it can't be torn.
            return Err(StoreError::damaged(&dir, unread.to_string()));
        }
        match judge(&unread, &content, marker, same_boot) {
            End::Zeros => {}
            End::Torn => reading.cut(&unread, content.len()).map_err(StoreError::io(&dir))?,
            End::Damaged(what) => return Err(StoreError::damaged(&dir, what)),
        }
    }
    let files = reading.finish(&dir).map_err(StoreError::io(&dir))?;
    let state = files.state();
    let mark = LogMark { end: files.end(), last: state.last, vote: state.vote };
    check(&mark, next(state.purged), files.first_index(), marker)
        .map_err(|what| StoreError::damaged(&dir, what))?;
    sync(&dir).map_err(StoreError::io(&dir))?;
    Ok(Opened { files, mark })
}

/// The log as read so far.
#[derive(Default)]
struct Reading {
    closed: VecDeque<Closed>,
    last: Option<LogFile>,
    end: u64,
    state: LogState,
    places: Places,
}

/// The first bytes that aren't a record.
struct Unread {
    /// Their position in the file.
    offset: usize,
    /// Their position in the log.
    at: u64,
    error: io::Error,
}

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it doesn't read at byte {} ({})", self.at, self.error)
    }
}

impl Reading {
    /// Reads the next file up to its end, or to bytes that are no record. An error is damage: a file or a
    /// record that is out of place.
    fn read(&mut self, file: LogFile, content: &[u8]) -> Result<Option<Unread>, String> {
        let before = self.last.take();
        if before.is_some() && file.begin != self.end {
            return Err(format!("a file begins at byte {} of the log, byte {} is due", file.begin, self.end));
        }
        let is_first = before.is_none();
        self.closed.extend(before.map(|file| Closed { file, last: self.state.last }));
        let begin = file.begin;
        self.end = begin;
        self.last = Some(file);
        let mut rest = content;
        while !rest.is_empty() {
            let offset = content.len() - rest.len();
            let record = match Record::decode(&mut rest) {
                Ok(record) => record,
                Err(error) => return Ok(Some(Unread { offset, at: self.end, error })),
            };
            let at = self.end..begin + (content.len() - rest.len()) as u64;
            let fits = match &record {
                Record::Checkpoint(state) => offset == 0 && (is_first || *state == self.state),
                _ => offset > 0,
            };
            if !fits {
                return Err(format!("the record at byte {} of the log is out of place", at.start));
            }
            self.state.apply(&record).map_err(|error| format!("at byte {} {error}", at.start))?;
            self.places.note(&record, at.clone());
            self.end = at.end;
        }
        Ok(None)
    }

    /// Cuts off an unfinished write.
    fn cut(&self, unread: &Unread, length: usize) -> io::Result<()> {
        let Some(LogFile { file, path, .. }) = &self.last else { return Ok(()) };
        let (offset, bytes) = (unread.offset, length - unread.offset);
        tracing::warn!(file = %path.display(), offset, bytes, "cutting off an unfinished write");
        file.set_len(offset as u64)?;
        file.sync_all()
    }

    /// Returns the log, ready for appends. Creates a file if there is none, and completes an empty last one.
    fn finish(self, dir: &Path) -> io::Result<LogFiles> {
        let Self { closed, last, end, state, places } = self;
        let last = match last {
            Some(last) => last,
            None => LogFile::create(dir, end)?,
        };
        let is_empty = last.begin == end;
        let mut files = LogFiles::new(dir, closed, last, end, state, places)?;
        if is_empty {
            files.add(&Record::Checkpoint(files.state().clone()))?;
            files.write(false)?;
        }
        Ok(files)
    }
}

/// Makes the page cache of the last run durable before the log relies on it. openraft takes all entries that
/// it finds in the log for flushed.
fn sync(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        simulation::sync(&fs::File::open(&path)?, &path)?;
    }
    disk::sync_dir(dir)
}

/// Compares the opened log with the marker.
fn check(mark: &LogMark, first_due: u64, first: Option<u64>, marker: &Marker) -> Result<(), String> {
    let due = &marker.log;
    if mark.end < due.end {
        return Err(format!(
            "it ends after {} bytes, {} bytes were on disk for certain (up to entry {:?})",
            mark.end, due.end, due.last
        ));
    }
    // Votes are only partially ordered: a vote that isn't provably as new is too old.
    if due.vote.is_some() && !matches!(mark.vote.partial_cmp(&due.vote), Some(order) if order.is_ge()) {
        return Err(format!("its vote is {:?}, {:?} was on disk for certain", mark.vote, due.vote));
    }
    if first.is_some_and(|first| first != first_due) || (first.is_none() && next(mark.last) > first_due) {
        return Err(format!("it begins with entry {first:?}, entry {first_due} is due"));
    }
    Ok(())
}

/// Nature of the bytes behind the last record.
enum End {
    /// Room for records.
    Zeros,
    /// An unfinished write.
    Torn,
    /// Records that were on disk, and have changed since.
    Damaged(String),
}

/// Decides about bytes at the end of the log that aren't a record.
fn judge(unread: &Unread, content: &[u8], marker: &Marker, same_boot: bool) -> End {
    let due = marker.log.end;
    if unread.at < due {
        return End::Damaged(format!("{unread}; {due} bytes were on disk"));
    }
    let rest = content.get(unread.offset..).unwrap_or_default();
    let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return End::Zeros };
    let torn = if same_boot {
        // The death of a process ends a write at a page boundary, and loses nothing that was written.
        let end = (unread.offset + last + 1).next_multiple_of(PAGE_BYTES).min(content.len());
        let written = content.get(unread.offset..end).unwrap_or_default();
        Record::decode(&mut &*written).is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    } else {
        // The death of a machine may leave any subset of the pages of the last write, and no later write.
        !Record::has_later_write(unread.at, rest)
    };
    if torn { End::Torn } else { End::Damaged(unread.to_string()) }
}
