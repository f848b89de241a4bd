//! Restore: creates a data directory from a backup, for a new cluster in a new epoch.
//!
//! The restored state waits next to an empty store until its member founds a cluster. Only then the members
//! are known, and the state becomes a snapshot, which the others get as usual. So one member is restored, and
//! the others begin with empty disks.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::path::{Path, PathBuf};

use ipam_api::backup::{self, Header, Piece, Reader, Unusable};
use openraft::StoredMembership;
use serde::{Deserialize, Serialize};

use crate::progress::Progress;
use crate::store::directory::frame::invalid;
use crate::store::directory::json_file::{self, StoredJson, VERSION};
use crate::store::directory::{StoreError, disk, lock_dir};
use crate::store::journal::{JournalFiles, Recent};
use crate::store::snapshot::{self, Instant};
use crate::store::state::{MachineStore, blocking};
use crate::types::{LogId, Member, Types};
use ipam_machine::{Broken, State};

const BUFFER_BYTES: usize = 1 << 20;

type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;

/// Failed restore. The data directory is untouched, or marked as unfinished.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup can't be used.
    #[error("{}: {source}", file.display())]
    Backup {
        file: PathBuf,
        /// The fault.
        source: Unusable,
    },
    /// The directory isn't empty.
    #[error(
        "{} isn't empty: a backup is only restored into an empty directory, so that nothing is lost. Move away \
         what is there, or name another one",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// The epoch is invalid.
    #[error("{0}")]
    Epoch(String),
    /// The directory can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Record of a restore, next to the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    version: u32,
    /// The seal of the backup.
    pub backup: String,
    /// The epoch that begins.
    pub epoch: u64,
    /// The header of the backup.
    pub header: Header,
}

impl Restored {
    /// Id that distinguishes this restore from others.
    pub(crate) fn id(&self) -> String {
        format!("{} as epoch {}", self.backup, self.epoch)
    }

    /// The restore that waits in a data directory for its cluster to be founded.
    ///
    /// # Errors
    /// If a restore was interrupted, or the file can't be read.
    pub(crate) fn waiting_in(dir: &Path) -> Result<Option<Self>, StoreError> {
        if unfinished(dir).exists() {
            let what = "a restore into this directory was broken off; empty it, and restore again";
            return Err(StoreError::damaged(dir, what));
        }
        json_file::load(dir)
    }

    /// The state that waits, with the open segment of its journal.
    pub(super) fn load(dir: &Path) -> io::Result<Instant> {
        let file = BufReader::with_capacity(BUFFER_BYTES, File::open(state(dir))?);
        snapshot::load(file, &Progress::default())
    }

    /// Removes the restored state, which no longer waits.
    pub(crate) fn forget(dir: &Path) {
        // Remaining files are ignored from now on: the directory belongs to a cluster.
        let _ = fs::remove_file(dir.join(Self::FILE));
        let _ = fs::remove_file(state(dir));
    }
}

impl StoredJson for Restored {
    const FILE: &'static str = "restored.json";
}

fn unfinished(dir: &Path) -> PathBuf {
    dir.join("restore-unfinished")
}

fn state(dir: &Path) -> PathBuf {
    dir.join("restored")
}

/// Creates a data directory from a backup. `epoch` is the next one by default.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(file: &Path, dir: &Path, epoch: Option<u64>, wall_ms: u64) -> Result<Restored, RestoreError> {
    let restored = Broken::catch(|| restore_from(file, dir, epoch, wall_ms));
    restored.map_err(StoreError::Broken)?
}

fn restore_from(file: &Path, dir: &Path, epoch: Option<u64>, wall_ms: u64) -> Result<Restored, RestoreError> {
    let wrong = |source| RestoreError::Backup { file: file.to_owned(), source };
    let open = || File::open(file).map(|file| BufReader::with_capacity(BUFFER_BYTES, file));
    // A directory in use is the first error to report.
    if dir.join("lock").exists() {
        drop(lock_dir(dir)?);
    }
    if !is_empty(dir).map_err(StoreError::io(dir))? {
        return Err(RestoreError::NotEmpty(dir.to_owned()));
    }
    // The whole backup is verified before the first byte is written.
    let checked = open().map_err(Unusable::Io).and_then(backup::check).map_err(wrong)?;
    let last = checked.header.epoch;
    let epoch = epoch.unwrap_or(last + 1);
    if epoch <= last {
        return Err(RestoreError::Epoch(format!(
            "epoch {epoch} can't follow on epoch {last}; name a number above that, and above that of \
             every other restore of this cluster"
        )));
    }
    let _lock = lock_dir(dir)?;
    let write = || -> io::Result<Result<(), RestoreError>> {
        File::create(unfinished(dir))?.sync_all()?;
        disk::sync_dir(dir)?;
        let mut pieces =
            Pieces { reader: Reader::begin(open()?).map_err(unusable)?, left: VecDeque::new(), next: None };
        let Instant { mut state, journal, .. } = snapshot::load(&mut pieces, &Progress::default())?;
        let mut recent = Recent::new(&state.header().journal, journal);
        if let Err(refusal) = state.begin_epoch(epoch, wall_ms, checked.header.history) {
            return Ok(Err(RestoreError::Epoch(refusal.detail())));
        }
        recent.take(state.take_journaled());
        pieces.write_segments(dir, &state, &recent)?;
        write_state(dir, &Instant { state, journal: recent.open().to_vec(), ..Instant::default() })?;
        Ok(Ok(()))
    };
    let done = write().map_err(StoreError::io(dir))?;
    let restored = Restored { version: VERSION, backup: checked.seal, epoch, header: checked.header };
    let finish = || -> io::Result<()> {
        fs::remove_file(unfinished(dir))?;
        disk::sync_dir(dir)
    };
    if done.is_ok() {
        json_file::save(dir, &restored)?;
    }
    finish().map_err(StoreError::io(dir))?;
    done.map(|()| restored)
}

/// Returns true if a directory is empty or absent. The file system's own entry and the lock of a refused
/// restore don't count.
fn is_empty(dir: &Path) -> io::Result<bool> {
    for entry in disk::if_there(fs::read_dir(dir))?.into_iter().flatten() {
        let name = entry?.file_name();
        if name != "lost+found" && name != "lock" {
            return Ok(false);
        }
    }
    Ok(true)
}

fn write_state(dir: &Path, instant: &Instant) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(BUFFER_BYTES, File::create(state(dir))?);
    snapshot::write(&mut to, instant)?;
    to.flush()?;
    to.get_ref().sync_all()
}

/// Pieces of a backup. The [`Read`] implementation yields the bytes of the state.
struct Pieces<R> {
    reader: Reader<R>,
    left: VecDeque<u8>,
    next: Option<Piece>,
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() && self.next.is_none() {
            match self.reader.next_piece().map_err(unusable)? {
                Some(Piece::State(bytes)) => self.left = bytes.into(),
                next => self.next = next,
            }
        }
        self.left.read(to)
    }
}

impl<R: Read> Pieces<R> {
    /// Writes the history, each segment checked against the state.
    fn write_segments(mut self, dir: &Path, state: &State, recent: &Recent) -> io::Result<()> {
        let files = JournalFiles::open(dir).map_err(io::Error::other)?;
        let mut number = None;
        while let Some(piece) = self
            .next
            .take()
            .map_or_else(|| self.reader.next_piece(), |next| Ok(Some(next)))
            .map_err(unusable)?
        {
            match (piece, number) {
                (Piece::Segment { number: next, .. }, before) => {
                    accept(&files, state, before)?;
                    number = Some(next);
                }
                (Piece::Bytes(bytes), Some(number)) => files.add_piece(number, &bytes)?,
                _ => return Err(invalid("a piece of the backup is not where it belongs")),
            }
        }
        accept(&files, state, number)?;
        files.write_sealed(recent)?;
        match state.segments.iter().find(|(number, _)| !files.has(*number)) {
            Some((number, _)) => {
                Err(invalid(format!("segment {number} of the history is missing in the backup")))
            }
            None => Ok(()),
        }
    }
}

fn accept(files: &JournalFiles, state: &State, number: Option<u64>) -> io::Result<()> {
    let Some(number) = number else { return Ok(()) };
    let segment = state.segments.get(number);
    let segment =
        segment.ok_or_else(|| invalid(format!("nothing is known of segment {number} of the history")))?;
    files.accept(number, segment)
}

fn unusable(error: Unusable) -> io::Error {
    match error {
        Unusable::Io(error) => error,
        other => invalid(other.to_string()),
    }
}

impl MachineStore {
    /// Makes a waiting restored state the initial state of the founders' cluster. The result is the same as
    /// if the first log entry had carried the state and been purged after a snapshot.
    pub(crate) async fn begin_restored(
        &mut self,
        dir: &Path,
        founders: &BTreeMap<u64, Member>,
    ) -> Result<(), StoreError> {
        if self.shared.applied().is_some() || Restored::waiting_in(dir)?.is_none() {
            return Ok(());
        }
        let first = LogId { leader_id: LeaderId { term: 0, node_id: 0 }, index: 0 };
        let voters = vec![founders.keys().copied().collect()];
        let membership = openraft::Membership::new(voters, founders.clone());
        let membership = membership.map_err(|error| StoreError::damaged(dir, error.to_string()))?;
        let membership = StoredMembership::new(Some(first), membership);
        let (machine, path) = (self.clone(), dir.to_owned());
        let begun = blocking(move || {
            let restored = Restored::load(&path)?;
            machine.journal.look_again(&restored.state);
            let instant = Instant { applied: Some(first), membership, ..restored };
            machine.snapshots.build(&instant, u64::MAX, || true)?;
            machine.durable.set_snapshot(instant.applied);
            Ok(instant)
        });
        let begun = async { self.shared.replace(begun.await?).await };
        self.shared.guard_work(begun).await?.map_err(StoreError::io(dir))
    }
}
