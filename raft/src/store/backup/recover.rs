//! Recovery of a stopped member's state as a backup, after the majority is lost.
//!
//! Restoring the backup begins another cluster. The directory isn't changed, so the member can still be
//! started if the others return.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use futures::stream;
use ipam_api::backup::Header;
use ipam_api::time::Timestamp;
use openraft::RaftLogReader as _;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};

use super::write::{Backup, Source};
use crate::progress::Progress;
use crate::store::directory::{DirLock, Identity, StoreError, disk, lock_dir};
use crate::store::log::next;
use crate::store::open::{Store, open_with};
use crate::store::rows;
use crate::threads;

/// Entries that are applied at once.
const ENTRIES_AT_ONCE: u64 = 1024;

/// A member's data directory, held so that the member can't be started meanwhile.
pub struct Survivor {
    dir: PathBuf,
    identity: Identity,
    _lock: DirLock,
}

/// The result of a recovery.
#[derive(Debug)]
pub struct Recovered {
    /// The header of the backup.
    pub header: Header,
    /// Number of log entries that this member didn't know to be committed. The backup includes them, since
    /// they may have been acknowledged.
    pub unknown: u64,
}

impl Survivor {
    /// Locks the data directory of a stopped member.
    ///
    /// # Errors
    /// If the member runs, or the directory belongs to no member.
    pub fn hold(dir: &Path) -> Result<Self, StoreError> {
        let foreign = || StoreError::damaged(dir, "it belongs to no member of a cluster");
        if !dir.join("lock").exists() {
            return Err(foreign());
        }
        let lock = lock_dir(dir)?;
        let identity =
            Identity::load(dir)?.filter(|identity| identity.cluster_id.is_some()).ok_or_else(foreign)?;
        Ok(Self { dir: dir.to_owned(), identity, _lock: lock })
    }

    /// Returns the id of the member's cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        self.identity.cluster_id.as_deref().unwrap_or_default()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Writes the contents of the directory as a backup, with the whole log applied. Works on a copy next to
    /// the file, which needs the space of snapshot, log and history.
    ///
    /// # Errors
    /// If the directory is damaged, or the file exists or can't be written.
    pub async fn export(
        &self,
        file: &Path,
        history: bool,
        taken_at: Timestamp,
    ) -> Result<Recovered, StoreError> {
        if file.exists() {
            let there =
                io::Error::new(io::ErrorKind::AlreadyExists, "it is there already, and was not touched");
            return Err(StoreError::io(file)(there));
        }
        let copy = Copy(beside(file, "recovering"));
        copy_all(&self.dir, &copy.0).map_err(StoreError::io(&copy.0))?;
        let mut store = open_with(&copy.0, Progress::default()).await?;
        let unknown = replay(&mut store).await.map_err(StoreError::io(&self.dir))?;
        let source = Source { cluster: self.cluster().to_owned(), member: self.name().to_owned(), taken_at };
        let (shared, journal, file) = (store.shared.clone(), store.journal.clone(), file.to_owned());
        let written = threads::blocking(move || {
            let backup = Backup::take(&shared, &journal, source, history).map_err(StoreError::io(&file))?;
            let header = backup.header().clone();
            write(backup, &file).map_err(StoreError::io(&file))?;
            Ok(header)
        });
        let written = written.await.map_err(|error| StoreError::Stopped(error.to_string()))?;
        // The threads of the store must end before the copy is removed.
        let Store { closer, .. } = store;
        closer.close().await?;
        written.map(|header| Recovered { header, unknown })
    }
}

/// Applies the whole log; returns how many entries were not known to be committed.
async fn replay(store: &mut Store) -> io::Result<u64> {
    let state = store.log.get_log_state().await?;
    let committed = store.log.read_committed().await?;
    let applied = store.shared.applied();
    let (mut from, end) = (next(applied), next(state.last_log_id));
    let unknown = end.saturating_sub(next(committed).max(from));
    while from < end {
        let entries = store.log.try_get_log_entries(from..end.min(from + ENTRIES_AT_ONCE)).await?;
        if entries.is_empty() {
            return Err(io::Error::other(format!("entry {from} of the log is missing")));
        }
        from += entries.len() as u64;
        store.machine.apply(stream::iter(entries.into_iter().map(|entry| Ok((entry, None))))).await?;
    }
    Ok(unknown)
}

fn write(backup: Backup, file: &Path) -> io::Result<()> {
    let aside = beside(file, "unfinished");
    let written = File::create(&aside).and_then(|to| {
        backup.write(&to)?;
        to.sync_all()?;
        disk::rename(&aside, file)
    });
    if written.is_err() {
        // A file that can't be removed is recognisable by its name.
        let _ = fs::remove_file(&aside);
    }
    written
}

fn beside(file: &Path, what: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{what}-{}", std::process::id()));
    name.into()
}

/// Copy of a data directory; removed when it is dropped.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // A directory that can't be removed is recognisable by its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies a directory without its rows, which are rebuilt, and without its lock.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let rows = rows::path(from).into_os_string();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let is_rows = path.as_os_str().as_encoded_bytes().starts_with(rows.as_encoded_bytes());
        if is_rows || entry.file_name() == "lock" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_all(&path, &target)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}
