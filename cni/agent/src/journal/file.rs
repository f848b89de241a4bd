//! File of the journal: one JSON record in each line, after its CRC-32.
//!
//! A line that was cut by a crash ends the file. After any other damage, the whole file is set aside: the
//! cluster has each attachment too, and the inventory restores them from there.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::attachments::Attachments;
use super::record::Record;

const NAME: &str = "journal";
const NEW: &str = "journal.new";
const DAMAGED: &str = "journal.damaged";
/// Lines, beyond twice those that the map needs, above which the file is rewritten.
const SURPLUS_LINES_MAX: usize = 4096;

/// Reason why the journal can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another agent has the directory.
    #[error("{} is in use by another agent; stop it first, or give this one its own state_dir", .0.display())]
    InUse(PathBuf),
    /// A file can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Failed operation.
        error: io::Error,
    },
}

/// Open journal.
#[derive(Debug)]
pub struct JournalFile {
    dir: PathBuf,
    /// The directory, locked against a second agent.
    lock: File,
    file: File,
    /// Bytes of complete lines.
    bytes: u64,
    lines: usize,
}

impl JournalFile {
    /// Opens the journal of a directory, and replays it.
    ///
    /// # Errors
    /// The reason, with the path.
    pub fn open(dir: &Path) -> Result<(Self, Attachments), JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| JournalError::Io { path, error }
        };
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        let lock = File::open(dir).map_err(failed(dir))?;
        lock.try_lock().map_err(|_| JournalError::InUse(dir.to_owned()))?;
        let path = dir.join(NAME);
        let mut file = open(&path).map_err(failed(&path))?;
        let Replay { attachments, bytes, lines, is_damaged } = replay(&file).map_err(failed(&path))?;
        if is_damaged {
            let aside = dir.join(DAMAGED);
            std::fs::copy(&path, &aside).map_err(failed(&aside))?;
            tracing::error!(kept = %aside.display(), "the journal is damaged; its intact records are used");
        }
        file.seek(io::SeekFrom::Start(bytes)).map_err(failed(&path))?;
        let mut journal = Self { dir: dir.to_owned(), lock, file, bytes, lines };
        if is_damaged {
            journal.rewrite(&attachments).map_err(failed(&path))?;
        }
        Ok((journal, attachments))
    }

    /// Appends lines, as a whole or not at all.
    ///
    /// # Errors
    /// The failed write.
    pub fn append(&mut self, lines: &[Vec<u8>]) -> io::Result<()> {
        // The remains of a failed write are removed first.
        self.file.set_len(self.bytes)?;
        self.file.seek(io::SeekFrom::Start(self.bytes))?;
        let all = lines.concat();
        self.file.write_all(&all)?;
        self.bytes += all.len() as u64;
        self.lines += lines.len();
        Ok(())
    }

    /// Waits until all lines are durable.
    ///
    /// # Errors
    /// The failed flush. Lines written since the last flush may be lost.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns true if most of the file is out of date.
    #[must_use]
    pub fn has_surplus(&self, attachments: &Attachments) -> bool {
        self.lines > 2 * (attachments.len() + attachments.pods().len()) + SURPLUS_LINES_MAX
    }

    /// Replaces the file by one that contains only the map.
    ///
    /// # Errors
    /// The failed operation. The old file is still in use then.
    pub fn rewrite(&mut self, attachments: &Attachments) -> io::Result<()> {
        let new = self.dir.join(NEW);
        let file = open(&new)?;
        file.set_len(0)?;
        let (mut bytes, mut lines) = (0, 0);
        let mut writer = BufWriter::new(&file);
        for record in attachments.records() {
            let line = line(&record)?;
            writer.write_all(&line)?;
            bytes += line.len() as u64;
            lines += 1;
        }
        writer.flush()?;
        drop(writer);
        file.sync_all()?;
        #[cfg(feature = "testing")]
        crate::testing::KillPoint::JournalWritten.reach();
        std::fs::rename(&new, self.dir.join(NAME))?;
        #[cfg(feature = "testing")]
        crate::testing::KillPoint::JournalReplaced.reach();
        (self.file, self.bytes, self.lines) = (file, bytes, lines);
        self.lock.sync_all()
    }
}

/// Line of a record.
///
/// # Errors
/// Never for the types of this crate; the codec's signature has it.
pub(super) fn line(record: &Record) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(record)?;
    let mut line = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    line.extend(json);
    line.push(b'\n');
    Ok(line)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Contents of a file.
struct Replay {
    attachments: Attachments,
    /// Bytes up to the end of the last complete line.
    bytes: u64,
    lines: usize,
    /// True if a complete line is damaged.
    is_damaged: bool,
}

fn replay(file: &File) -> io::Result<Replay> {
    let mut replay = Replay { attachments: Attachments::default(), bytes: 0, lines: 0, is_damaged: false };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        match read(&line) {
            Some(record) => replay.attachments.apply(record),
            None => replay.is_damaged = true,
        }
        replay.bytes += line.len() as u64;
        replay.lines += 1;
        line.clear();
    }
    Ok(replay)
}

fn read(line: &[u8]) -> Option<Record> {
    let (sum, json) = line.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (crc32fast::hash(json) == sum).then(|| serde_json::from_slice(json).ok())?
}
