//! Files of the log: appending, syncing, reading back and removing.
//!
//! A file is named after the position of its first byte in the whole log. Records are added to the last file
//! until it is full. The others are complete and on disk; one whose entries are all purged is removed.
//!
//! The last file ends with zeros, which later records overwrite: a sync of overwritten bytes doesn't have to
//! write the file's length and its block map. Such a sync takes about 0.7 times as long as after an append.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::places::{Place, Places};
use super::record::Record;
use super::state::LogState;
use super::view::payload_size;
use crate::simulation;
use crate::store::directory::frame::invalid;
use crate::store::directory::{disk, truncating};
use crate::types::{Entry, LogId};

/// Bytes at which a file is full.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The smallest page of a kernel. Larger pages are multiples of it.
pub(super) const PAGE_BYTES: usize = 4096;
static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
/// Bytes of zeros by which the last file grows. The number is small, since a disk may be almost full.
const GROWTH_BYTES: u64 = 128 << 10;
/// Memory that the buffer keeps for the next write.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// The log's files, with an index of their content.
#[derive(Debug)]
pub(in crate::store) struct LogFiles {
    dir: PathBuf,
    /// Complete files, from the oldest.
    closed: VecDeque<Closed>,
    open: LogFile,
    /// Length of the open file, zeros included.
    open_bytes: u64,
    /// Position up to which records are written to the open file.
    written: u64,
    /// Records that are written there next.
    buffer: Vec<u8>,
    /// Position up to which all is on disk.
    synced: u64,
    state: LogState,
    places: Places,
}

/// One file.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Position of the file's first byte.
    pub(super) begin: u64,
}

/// A complete file.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) file: LogFile,
    /// The last entry of the log when the file was full.
    pub(super) last: Option<LogId>,
}

impl LogFiles {
    /// Takes over files that were read up to `end`, and are on disk. The last one is open.
    ///
    /// # Errors
    /// If the file's length is unknown.
    pub(super) fn new(
        dir: &Path,
        closed: VecDeque<Closed>,
        open: LogFile,
        end: u64,
        state: LogState,
        places: Places,
    ) -> io::Result<Self> {
        let (dir, open_bytes) = (dir.to_owned(), open.file.metadata()?.len());
        let (written, synced) = (end, end);
        Ok(Self { dir, closed, open, open_bytes, written, synced, buffer: Vec::new(), state, places })
    }

    pub(in crate::store) fn state(&self) -> &LogState {
        &self.state
    }

    /// Returns the position of the first byte that the files still have.
    pub(in crate::store) fn begin(&self) -> u64 {
        self.closed.front().map_or(self.open.begin, |closed| closed.file.begin)
    }

    /// Returns the directory of the files.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the number of bytes ever added.
    pub(in crate::store) fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Bytes by which the next write makes the files longer.
    pub(in crate::store) fn growth(&self) -> u64 {
        let length = (self.end() - self.open.begin).next_multiple_of(GROWTH_BYTES);
        length.saturating_sub(self.open_bytes)
    }

    /// Adds a record to the buffer; [`write`](Self::write) takes it to the disk.
    ///
    /// # Errors
    /// If the record can't follow, or the disk refuses a new file. The log is unusable then.
    pub(in crate::store) fn add(&mut self, record: &Record) -> io::Result<()> {
        // A file begins with a checkpoint and needs no `Synced` record there: the file before it is on disk.
        if self.buffer.is_empty() && self.synced == self.written && self.written > self.open.begin {
            Record::Synced(self.written).encode(&mut self.buffer)?;
        }
        let begin = self.end();
        self.state.apply(record)?;
        record.encode(&mut self.buffer)?;
        self.places.note(record, begin..self.end());
        if self.end() - self.open.begin >= FILE_BYTES_MAX { self.begin_file() } else { Ok(()) }
    }

    /// Writes all added records to the file, and with `sync` to the disk.
    ///
    /// # Errors
    /// If the disk refuses. The log is unusable then.
    pub(in crate::store) fn write(&mut self, sync: bool) -> io::Result<()> {
        self.grow()?;
        self.write_out()?;
        if sync {
            self.open.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    /// Extends the file with zeros for the added records and for later ones.
    fn grow(&mut self) -> io::Result<()> {
        let length = self.open_bytes + self.growth();
        while self.open_bytes < length {
            // A write for each page: the kernel keeps a large write as one large page, and counts all of it
            // whenever a record is written there.
            let offset = usize::try_from(self.open_bytes % ZEROS.len() as u64).unwrap_or_default();
            let zeros = ZEROS.get(offset..).unwrap_or_default();
            self.open.write(zeros, self.open_bytes)?;
            self.open_bytes += zeros.len() as u64;
        }
        Ok(())
    }

    /// Writes the buffer.
    fn write_out(&mut self) -> io::Result<()> {
        self.open.write(&self.buffer, self.written - self.open.begin)?;
        self.written = self.end();
        self.open_bytes = self.open_bytes.max(self.written - self.open.begin);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        Ok(())
    }

    /// Completes the open file, and begins the next one.
    fn begin_file(&mut self) -> io::Result<()> {
        self.write_out()?;
        // A closed file ends with its last record. The existence of the next file shows that this one is on
        // disk.
        self.open.file.set_len(self.written - self.open.begin)?;
        self.open.sync()?;
        self.synced = self.written;
        let full = std::mem::replace(&mut self.open, LogFile::create(&self.dir, self.written)?);
        self.open_bytes = 0;
        self.closed.push_back(Closed { file: full, last: self.state.last });
        Record::Checkpoint(self.state.clone()).encode(&mut self.buffer)
    }

    /// Removes the files that hold only purged entries. All records must be on disk.
    ///
    /// # Errors
    /// If the disk refuses. The log is unusable then.
    pub(in crate::store) fn remove_purged(&mut self) -> io::Result<()> {
        let before = self.closed.len();
        while let Some(oldest) = self.closed.front()
            && oldest.last <= self.state.purged
        {
            truncating::remove_file(&oldest.file.path)?;
            self.closed.pop_front();
        }
        if self.closed.len() < before { disk::sync_dir(&self.dir) } else { Ok(()) }
    }

    /// Returns the index of the first entry that the files still have.
    pub(super) fn first_index(&self) -> Option<u64> {
        self.places.first()
    }

    /// Reads entries of a range, of about `bytes_max` bytes in memory, but at least one if there is any.
    ///
    /// # Errors
    /// If a file can't be read, or differs from the written records.
    pub(in crate::store) fn read(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let mut left = bytes_max;
        let mut entries = Vec::new();
        for (index, place) in self.places.range(range) {
            let entry = self.read_at(place)?;
            if entry.log_id.index != index {
                return Err(invalid(format!("{:?} is in the place of entry {index}", entry.log_id)));
            }
            left = left.saturating_sub(payload_size(&entry.payload));
            entries.push(entry);
            if left == 0 {
                break;
            }
        }
        Ok(entries)
    }

    fn read_at(&self, place: Place) -> io::Result<Entry> {
        let mut bytes = vec![0; place.bytes as usize];
        if let Some(offset) = place.begin.checked_sub(self.written) {
            let added = usize::try_from(offset).ok().and_then(|offset| self.buffer.get(offset..));
            bytes = added.and_then(|added| added.get(..bytes.len())).unwrap_or_default().to_vec();
        } else {
            let file = self.file_at(place.begin);
            file.file.read_exact_at(&mut bytes, place.begin.saturating_sub(file.begin))?;
        }
        match Record::decode(&mut bytes.as_slice())? {
            Record::Append(entry) => Ok(entry),
            other => Err(invalid(format!("{other:?} is in the place of an entry"))),
        }
    }

    /// The file with the byte at a position.
    fn file_at(&self, position: u64) -> &LogFile {
        if position >= self.open.begin {
            return &self.open;
        }
        let after = self.closed.partition_point(|closed| closed.file.begin <= position);
        self.closed.get(after.saturating_sub(1)).map_or(&self.open, |closed| &closed.file)
    }
}

impl LogFile {
    /// Creates the file that begins at a position, under a durable name.
    pub(super) fn create(dir: &Path, begin: u64) -> io::Result<Self> {
        let path = dir.join(file_name(begin));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        disk::sync_dir(dir)?;
        Ok(Self { file, path, begin })
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        simulation::before_write(&self.file, &self.path, offset..offset + bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset)
    }

    /// Syncs the contents, and as much of the inode as reading them needs (fdatasync).
    fn sync(&self) -> io::Result<()> {
        simulation::sync(&self.file, &self.path)
    }

    /// Opens an existing file.
    pub(super) fn open(path: PathBuf, begin: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Self { file, path, begin })
    }
}

/// Name of the file that begins at a position, with a separator before each third digit.
pub(in crate::store) fn file_name(begin: u64) -> String {
    let digits = format!("{begin:020}");
    let (head, thousands) = digits.split_at(2);
    let thousands: Vec<&str> =
        thousands.as_bytes().chunks(3).filter_map(|digits| std::str::from_utf8(digits).ok()).collect();
    format!("r-{head}_{}.wal", thousands.join("_"))
}

/// Position at which a file of this name begins; nothing if the name is no log file's.
fn begin_of(name: &str) -> Option<u64> {
    let digits: String =
        name.strip_prefix("r-")?.strip_suffix(".wal")?.chars().filter(|c| *c != '_').collect();
    digits.parse().ok()
}

/// The log's files, from the oldest, each with the position of its first byte.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if let Some(begin) = entry.file_name().to_str().and_then(begin_of) {
            files.push((begin, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}
