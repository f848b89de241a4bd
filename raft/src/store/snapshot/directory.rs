//! Directory of snapshots: the current one, and incomplete ones.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::format;
use super::instant::{Instant, Meta};
use crate::progress::Progress;
use crate::store::directory::background::{self, PacedFile, SYNC_BYTES};
use crate::store::directory::truncating::{self, Replaceable};
use crate::store::directory::{StoreError, disk, frame};
use crate::sync::held;
use crate::threads;
use crate::types::{LogId, Types};
use ipam_machine::level::check_known;

/// Bytes of a snapshot that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A snapshot, as openraft has it.
pub(in crate::store) type Snapshot = openraft::type_config::alias::SnapshotOf<Types, SnapshotFile>;

/// Number that distinguishes temporary files of this process; a start removes those of other processes.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The directory of the snapshots.
#[derive(Debug)]
pub(in crate::store) struct SnapshotDir {
    dir: PathBuf,
    /// Locked while a file becomes the current one, so that an older snapshot never replaces a newer one.
    newest: Mutex<Newest>,
}

/// The current snapshot.
#[derive(Debug, Default)]
struct Newest {
    last: Option<LogId>,
    /// File of the current snapshot, kept while it is read; none if there is no snapshot.
    file: Option<Arc<Replaceable>>,
}

impl SnapshotDir {
    /// Opens the directory, and removes unfinished snapshots.
    pub(in crate::store) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let dir = path(data_dir);
        disk::create_dir(&dir).map_err(StoreError::io(&dir))?;
        for entry in fs::read_dir(&dir).map_err(StoreError::io(&dir))? {
            let path = entry.map_err(StoreError::io(&dir))?.path();
            if path != current_path(&dir) {
                fs::remove_file(&path).map_err(StoreError::io(&path))?;
            }
        }
        let path = current_path(&dir);
        let file = disk::if_there(File::open(&path)).map_err(StoreError::io(&path))?;
        let header = file.map(|file| format::read_header(&file)).transpose();
        let header = header.map_err(|error| damaged(&path, &error))?;
        let newest = header.map_or_else(Newest::default, |header| Newest {
            last: header.meta.last_log_id,
            file: Some(Arc::new(Replaceable::new(path))),
        });
        Ok(Self { dir, newest: Mutex::new(newest) })
    }

    /// Returns the last entry in the current snapshot.
    pub(in crate::store) fn last(&self) -> Option<LogId> {
        held(&self.newest).last
    }

    /// Checks that the current snapshot, if any, is whole.
    pub(in crate::store) fn verify_current(&self) -> Result<(), StoreError> {
        self.read_current(format::verify).map(drop)
    }

    /// State in the current snapshot, if any.
    pub(in crate::store) fn load_current(&self, progress: &Progress) -> Result<Option<Instant>, StoreError> {
        self.read_current(|from| format::load(from, progress))
    }

    fn read_current<T>(
        &self,
        read: impl FnOnce(BufReader<File>) -> io::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let path = current_path(&self.dir);
        let newest = held(&self.newest);
        let Some(_kept) = newest.file.clone() else { return Ok(None) };
        let opened = disk::if_there(File::open(&path));
        drop(newest);
        let file = opened.map_err(StoreError::io(&path))?;
        file.map(|file| read(buffered(file))).transpose().map_err(|error| damaged(&path, &error))
    }

    /// Writes a snapshot of a state at a limited rate, and makes it current unless a newer one has arrived.
    /// Returns the current snapshot, or none if `is_wanted` returns false after the write.
    pub(in crate::store) fn build(
        &self,
        point: &Instant,
        bytes_per_second: u64,
        is_wanted: impl FnOnce() -> bool,
    ) -> io::Result<Option<SnapshotFile>> {
        let aside = Aside::new(&self.dir);
        let to = PacedFile::new(File::create(&aside.path)?, bytes_per_second);
        let mut to = BufWriter::with_capacity(format::FRAME_BYTES_MAX, to);
        format::write(&mut to, point)?;
        to.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
        if !is_wanted() {
            return Ok(None);
        }
        self.make_current(aside, point.applied)?;
        self.current()?.ok_or_else(|| io::Error::other("the snapshot just written is gone")).map(Some)
    }

    /// Makes a received snapshot the current one, and returns its content.
    pub(in crate::store) fn install(&self, mut snapshot: SnapshotFile, meta: &Meta) -> io::Result<Instant> {
        let instant = match snapshot.held.take() {
            Some(held) => *held,
            None => load(&snapshot.path)?,
        };
        check_known(instant.state.header().level).map_err(io::Error::other)?;
        if snapshot.meta != *meta {
            return Err(frame::invalid(format!("a snapshot of {} came as one of {meta}", snapshot.meta)));
        }
        if snapshot.path != current_path(&self.dir) {
            let mut aside = Aside::new(&self.dir);
            match snapshot.aside {
                // Written and synced in this very directory.
                Some(received) if received.path.parent() == Some(&self.dir) => aside = received,
                _ => {
                    fs::copy(&snapshot.path, &aside.path)?;
                    File::open(&aside.path)?.sync_all()?;
                }
            }
            self.make_current(aside, meta.last_log_id)?;
        }
        Ok(instant)
    }

    /// Current snapshot, if any.
    pub(in crate::store) fn current(&self) -> io::Result<Option<SnapshotFile>> {
        let newest = held(&self.newest);
        let Some(kept) = newest.file.clone() else { return Ok(None) };
        let file = disk::if_there(SnapshotFile::open(current_path(&self.dir)))?;
        Ok(file.map(|file| SnapshotFile { kept: Some(kept), ..file }))
    }

    /// Empty snapshot of the time before the first entry, for callers that need one.
    pub(in crate::store) fn none(&self) -> io::Result<SnapshotFile> {
        let file = Arc::new(File::open(&self.dir)?);
        let (path, meta) = (self.dir.clone(), Meta::default());
        Ok(SnapshotFile { path, file, offset: 0, length: 0, meta, aside: None, kept: None, held: None })
    }

    fn make_current(&self, mut aside: Aside, last: Option<LogId>) -> io::Result<()> {
        let mut newest = held(&self.newest);
        if last < newest.last {
            return Ok(());
        }
        let path = current_path(&self.dir);
        let rename = || disk::rename(&aside.path, &path);
        match &newest.file {
            Some(old) => old.replace(rename)?,
            None => rename()?,
        }
        aside.kept = true;
        *newest = Newest { last, file: Some(Arc::new(Replaceable::new(path))) };
        Ok(())
    }
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("snapshot")
}

/// The file of the current snapshot of a data directory.
pub(in crate::store) fn path_in(data_dir: &Path) -> PathBuf {
    current_path(&path(data_dir))
}

fn current_path(dir: &Path) -> PathBuf {
    dir.join("current")
}

fn buffered(file: File) -> BufReader<File> {
    BufReader::with_capacity(BUFFER_BYTES, file)
}

fn load(path: &Path) -> io::Result<Instant> {
    format::load(buffered(File::open(path)?), &Progress::default())
}

fn damaged(path: &Path, error: &io::Error) -> StoreError {
    StoreError::damaged(path, error.to_string())
}

/// Temporary file; removed when it is dropped, unless it became the current snapshot.
#[derive(Debug)]
struct Aside {
    path: PathBuf,
    kept: bool,
}

impl Aside {
    fn new(dir: &Path) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { path: dir.join(format!("unfinished-{number}")), kept: false }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.kept {
            // The file may not exist; a leftover is removed at the next start.
            let _gone = truncating::remove_file(&self.path);
        }
    }
}

/// A whole snapshot, open for reading from its beginning.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes that were read.
    offset: u64,
    length: u64,
    meta: Meta,
    aside: Option<Aside>,
    /// Keeps the file allocated while it is read, if it is or was the current one.
    #[expect(dead_code, reason = "held, not read")]
    kept: Option<Arc<Replaceable>>,
    /// The content, if it was read already.
    held: Option<Box<Instant>>,
}

impl SnapshotFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = File::open(&path)?;
        let length = file.metadata()?.len();
        let meta = format::read_header(&file)?.meta;
        Ok(Self { path, file: Arc::new(file), offset: 0, length, meta, aside: None, kept: None, held: None })
    }

    /// Prepares to receive a snapshot into a data directory.
    ///
    /// # Errors
    /// If the file can't be created.
    pub(crate) async fn incoming(data_dir: &Path) -> io::Result<IncomingSnapshot> {
        let aside = Aside::new(&path(data_dir));
        let path = aside.path.clone();
        let file = in_background(move || File::create(path)).await?;
        Ok(IncomingSnapshot { file: Arc::new(file), aside, unsynced: 0 })
    }

    /// Returns the length of the snapshot in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the last entry in the snapshot, and the membership at that entry.
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The next piece, of at most `bytes_max`; empty at the end.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(crate) async fn read_piece(&mut self, bytes_max: usize) -> io::Result<Bytes> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let (file, offset, mut piece) = (Arc::clone(&self.file), self.offset, vec![0; left.min(bytes_max)]);
        let read = move || file.read_exact_at(&mut piece, offset).map(|()| Bytes::from(piece));
        let piece = in_background(read).await?;
        self.offset += piece.len() as u64;
        Ok(piece)
    }

    pub(in crate::store) fn into_snapshot(self) -> Snapshot {
        openraft::Snapshot { meta: self.meta.clone(), snapshot: self }
    }
}

/// Snapshot that is being received. If it is dropped before it is sealed, no file remains.
#[derive(Debug)]
pub(crate) struct IncomingSnapshot {
    file: Arc<File>,
    aside: Aside,
    unsynced: u64,
}

impl IncomingSnapshot {
    /// Adds a piece.
    ///
    /// # Errors
    /// If the piece can't be written.
    pub(crate) async fn write_piece(&mut self, piece: Bytes) -> io::Result<()> {
        self.unsynced += piece.len() as u64;
        // One sync of all of it at the end would delay the log, which shares the disk.
        let sync = self.unsynced >= SYNC_BYTES;
        if sync {
            self.unsynced = 0;
        }
        let file = Arc::clone(&self.file);
        let write = move || {
            (&*file).write_all(&piece)?;
            if sync { file.sync_data() } else { Ok(()) }
        };
        in_background(write).await
    }

    /// Syncs the snapshot, reads it and checks that it is whole. It is read once: exactly what was verified
    /// is installed.
    ///
    /// # Errors
    /// If it can't be written, or doesn't match its seal (`InvalidData`, `UnexpectedEof`).
    pub(crate) async fn seal_and_verify(self) -> io::Result<SnapshotFile> {
        let work = move || {
            self.file.sync_all()?;
            let held = Some(Box::new(load(&self.aside.path)?));
            let mut file = SnapshotFile::open(self.aside.path.clone())?;
            file.held = held;
            file.aside = Some(self.aside);
            Ok(file)
        };
        background::run(work).await
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    threads::blocking(work).await.map_err(io::Error::other)?
}
