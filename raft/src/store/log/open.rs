//! Opening of the log, with a distinction between torn writes and damage.
//!
//! A crash leaves at most one unfinished write at the very end, of unacknowledged records. It is truncated.
//! Everything else that can't be read is damage, and so is an end before the marker, however clean:
//! acknowledged records are missing.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codeq::Decode as _;
use raft_log::{Config, RaftLog, chunked_wal};

use super::view::next;
use super::wal::{Record, Wal};
use crate::store::directory::{LogMark, Marker, StoreError, disk};

/// Also bounds memory: entries of the open file are never evicted from raft-log's cache.
const FILE_BYTES_MAX: usize = 16 << 20;
const READ_BUFFER_BYTES: usize = 1 << 20;
const CACHE_BYTES_MAX: usize = 8 << 20;
const CACHE_ENTRIES_MAX: usize = 16 << 10;

/// The log, open, and how far it reaches.
pub(in crate::store) struct Opened {
    pub(in crate::store) log: RaftLog<Wal>,
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
    let log = match open_files(&dir) {
        Ok(log) => log,
        Err(error) if is_about_content(&error) => {
            cut_torn_tail(&dir, marker, same_boot, &error)?;
            open_files(&dir).map_err(|error| StoreError::damaged(&dir, error.to_string()))?
        }
        Err(error) => return Err(StoreError::io(&dir)(error)),
    };
    let state = log.log_state();
    let mark = LogMark {
        end: log.stat().open_chunk.global_end,
        last: state.last().map(|id| id.0),
        vote: state.vote().map(|vote| vote.0),
    };
    let first = log.read(next(state.purged().map(|id| id.0)), u64::MAX).next();
    let first_index = first.transpose().map_err(StoreError::io(&dir))?.map(|(id, _)| id.0.index);
    check(&mark, next(state.purged().map(|id| id.0)), first_index, marker)
        .map_err(|what| StoreError::damaged(&dir, what))?;
    sync(&dir).map_err(StoreError::io(&dir))?;
    Ok(Opened { log, mark })
}

/// Makes the page cache of the last run durable before it is relied on. openraft takes all entries that it
/// finds in the log for flushed.
fn sync(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        fs::File::open(entry?.path())?.sync_all()?;
    }
    disk::sync_dir(dir)
}

fn open_files(dir: &Path) -> io::Result<RaftLog<Wal>> {
    let config = Config {
        wal: chunked_wal::Config {
            chunk_max_size: Some(FILE_BYTES_MAX),
            read_buffer_size: Some(READ_BUFFER_BYTES),
            truncate_incomplete_record: Some(false),
            // Our own thread forms the groups; another wait would only add to the latency.
            flush_batch_wait: Some(std::time::Duration::ZERO),
            // The thread that writes the groups forms them, too, and must not wait for itself.
            flush_queue_max_bytes: Some(usize::MAX / 2),
            ..chunked_wal::Config::new(dir.display())
        },
        log_cache_max_items: Some(CACHE_ENTRIES_MAX),
        log_cache_capacity: Some(CACHE_BYTES_MAX),
    };
    RaftLog::open(Arc::new(config))
}

/// True if an error is about the content of the files, and not about the disk and the rights to it.
fn is_about_content(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof | Other)
}

/// Compares what opened with what must be there.
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

/// Finds the record that doesn't read and cuts there, if it can only be an unfinished write.
fn cut_torn_tail(dir: &Path, marker: &Marker, same_boot: bool, error: &io::Error) -> Result<(), StoreError> {
    let damaged = |what: String| StoreError::damaged(dir, what);
    let Some((start, path)) = last_file(dir).map_err(StoreError::io(dir))? else {
        return Err(damaged(error.to_string()));
    };
    let content = fs::read(&path).map_err(StoreError::io(&path))?;
    let Some((offset, bad)) = first_bad(&content) else {
        // The last file is sound, so the damage is in an earlier one, which was synced long ago.
        return Err(damaged(error.to_string()));
    };
    let at = start + offset as u64;
    if at < marker.log.end {
        let due = marker.log.end;
        return Err(damaged(format!("it doesn't read at byte {at} ({bad}); {due} bytes were on disk")));
    }
    // The death of a process leaves a shorter file, nothing else. Only the death of a machine may also leave
    // unwritten pages, and then nothing valid follows them: the next group is written after the sync.
    let short = bad.kind() == io::ErrorKind::UnexpectedEof;
    let rest = content.get(offset..).unwrap_or_default();
    if !short && (same_boot || has_valid_record(rest)) {
        return Err(damaged(format!("it doesn't read at byte {at} ({bad})")));
    }
    tracing::warn!(file = %path.display(), offset = offset, bytes = rest.len(), "cutting off an unfinished write");
    let cut = OpenOptions::new().write(true).open(&path).and_then(|file| {
        file.set_len(offset as u64)?;
        file.sync_all()
    });
    cut.map_err(StoreError::io(&path))
}

/// The first record that doesn't read, and how that shows.
fn first_bad(content: &[u8]) -> Option<(usize, io::Error)> {
    let mut rest = content;
    while !rest.is_empty() {
        let offset = content.len() - rest.len();
        if let Err(error) = Record::decode(&mut rest) {
            return Some((offset, error));
        }
    }
    None
}

fn has_valid_record(rest: &[u8]) -> bool {
    (1..rest.len()).any(|start| rest.get(start..).is_some_and(|mut from| Record::decode(&mut from).is_ok()))
}

/// The newest of the log's files and the byte of the whole log with which it begins.
fn last_file(dir: &Path) -> io::Result<Option<(u64, PathBuf)>> {
    let mut newest = None;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Ok(start) = chunked_wal::Config::parse_chunk_file_name(&name.to_string_lossy()) {
            newest = newest.max(Some((start, entry.path())));
        }
    }
    Ok(newest)
}
