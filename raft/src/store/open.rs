//! Opening and closing a data directory as a whole.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use openraft::RaftSnapshotBuilder as _;
use openraft::storage::RaftStateMachine as _;
use tokio::sync::{oneshot, watch};

use crate::progress::Progress;
use crate::store::directory::{
    Durable, FreeSpace, Headroom, Marker, START_BYTES, StoreCounters, StoreError, StoreFailure, disk, report,
};
use crate::store::journal::{Journal, JournalFiles};
use crate::store::log::{self, EntrySizes, LogStore};
use crate::store::rows::{Notifier, Wakeup};
use crate::store::snapshot::{self, SnapshotDir};
use crate::store::start_source::{begin, is_near, sound_rows};
use crate::store::state::{Behind, MachineStore, SharedState};
use crate::threads::{self, Thread};
use ipam_machine::Broken;
use ipam_machine::level::check_known;

/// Number of allocations above which reading a state from rows takes seconds.
const LARGE_ALLOCATIONS: usize = 50_000;

/// Everything that a data directory holds, open and running.
pub(crate) struct Store {
    /// The log, for openraft.
    pub(crate) log: LogStore,
    /// The state machine, for openraft.
    pub(crate) machine: MachineStore,
    /// The applied state, for all readers.
    pub(crate) shared: SharedState,
    /// Journal, for readers.
    pub(crate) journal: Journal,
    /// Bytes of the log between two entries.
    pub(crate) reach: EntrySizes,
    /// Free space of the disk.
    pub(crate) headroom: Arc<Headroom>,
    pub(crate) counters: Arc<StoreCounters>,
    /// Reason of a failure that prevents all further writes: then the process must end.
    pub(crate) failed: watch::Receiver<Option<StoreFailure>>,
    /// Closes the store cleanly.
    pub(crate) closer: Closer,
}

/// Opens a data directory, without a report of progress.
#[cfg(test)]
pub(crate) async fn open(dir: &Path) -> Result<Store, StoreError> {
    open_with(dir, Progress::default()).await
}

/// Opens a data directory, new or old. The caller must hold its lock.
///
/// # Errors
/// If the directory can't be used; the error has the reason and the remedy.
pub(crate) async fn open_with(dir: &Path, progress: Progress) -> Result<Store, StoreError> {
    let dir = dir.to_owned();
    let open = move || Broken::catch(|| open_blocking(&dir, &progress)).inspect_err(report);
    threads::blocking(open).await.map_err(|error| StoreError::Stopped(error.to_string()))??
}

fn open_blocking(dir: &Path, progress: &Progress) -> Result<Store, StoreError> {
    progress.begin("its log is opened");
    disk::create_dir(dir).map_err(StoreError::io(dir))?;
    let headroom = Arc::new(Headroom::new(dir, snapshot::path_in(dir)));
    // On a full disk, a start needs the ballast of the last run.
    headroom.make_room(START_BYTES);
    let boot_id = disk::boot_id(dir);
    let before = last_marker(dir, &boot_id)?;
    let same_boot = before.boot_id == boot_id;
    let opened = log::open(dir, &before, same_boot)?;
    let snapshots = SnapshotDir::open(dir)?;
    let covered = opened.mark.last.max(snapshots.last());
    if before.rows_applied > covered {
        let what = format!("it ends with entry {covered:?}, but {:?} was applied", before.rows_applied);
        return Err(StoreError::damaged(&log::path(dir), what));
    }
    let journal = Arc::new(JournalFiles::open(dir)?);
    let counters = Arc::new(StoreCounters::default());
    let rows = sound_rows(dir, &before, same_boot, covered)?;
    let start = begin(dir, rows, &snapshots, covered, &journal, progress)?;
    if start.rows.is_none() {
        counters.rows_rebuilt.fetch_add(1, Relaxed);
    }
    check_known(start.instant.state.header().level)
        .map_err(|source| StoreError::Level { dir: dir.to_owned(), source })?;
    let purged = opened.files.state().purged;
    if let Some(purged) = purged
        && Some(purged) > start.instant.applied
    {
        let what = format!("entries up to {purged:?} are gone from the log, and no snapshot has them");
        return Err(StoreError::damaged(dir, what));
    }

    let marker = Marker {
        boot_id,
        clean: false,
        log: opened.mark.clone(),
        rows_applied: start.rows.as_ref().and_then(|(_, applied)| *applied),
    };
    marker.write(dir)?;
    let durable = Arc::new(Durable::default());
    durable.set_log(opened.mark.clone());
    durable.set_snapshot(snapshots.last());
    let begin = opened.files.begin();
    let reach = EntrySizes::new(Arc::clone(&durable), begin, purged);
    let (notifier, wakeups) = Notifier::new();
    journal.fit(&start.instant.state);
    let (failed, failed_watch) = watch::channel(None);
    let shared = SharedState::start(start.instant, notifier.clone(), Arc::clone(&counters), failed.clone())
        .map_err(StoreError::io(dir))?;
    let (log, log_thread) = LogStore::start(
        dir,
        opened,
        Arc::clone(&durable),
        notifier.clone(),
        failed.clone(),
        Arc::clone(&headroom),
        Arc::clone(&counters),
    )?;
    let behind = Behind {
        dir: dir.to_owned(),
        shared: shared.downgrade(),
        durable: Arc::clone(&durable),
        journal: Arc::clone(&journal),
        headroom: Arc::clone(&headroom),
        marked: marker.clone(),
        marker,
        rows: start.rows.map(|(rows, _)| rows),
        install_count: 0,
        off: 0,
        failed,
        pending: notifier.pending(),
    };
    let rows_thread = threads::start("ipamd-rows", behind.run(wakeups)).map_err(StoreError::io(dir))?;
    // Rows that must be rebuilt don't wait for the first change.
    notifier.changed();
    let reader = Journal::new(Arc::new(shared.clone()), Arc::clone(&journal));
    let machine = MachineStore {
        shared: shared.clone(),
        snapshots: Arc::new(snapshots),
        durable,
        journal,
        headroom: Arc::clone(&headroom),
        counters: Arc::clone(&counters),
        bytes_per_second: u64::MAX,
    };
    let closer = Closer {
        log: log.clone(),
        notifier,
        machine: machine.clone(),
        large_allocations: LARGE_ALLOCATIONS,
        #[cfg(test)]
        log_thread,
        rows_thread,
    };
    #[cfg(not(test))]
    drop(log_thread);
    Ok(Store {
        log,
        machine,
        shared,
        journal: reader,
        reach,
        headroom,
        counters,
        failed: failed_watch,
        closer,
    })
}

/// Returns the marker of the last run. A new directory gets its marker before its log, so a log without a
/// marker means that the marker was lost.
fn last_marker(dir: &Path, boot_id: &str) -> Result<Marker, StoreError> {
    if let Some(marker) = Marker::read(dir)? {
        return Ok(marker);
    }
    if log::path(dir).exists() {
        return Err(StoreError::damaged(&Marker::path(dir), "the file is gone, but there is a log"));
    }
    let marker = Marker { boot_id: boot_id.to_owned(), ..Marker::default() };
    marker.write(dir)?;
    Ok(marker)
}

/// Closes a store. Dropped instead, it leaves everything as a crash would.
pub(crate) struct Closer {
    log: LogStore,
    pub(super) notifier: Notifier,
    machine: MachineStore,
    pub(super) large_allocations: usize,
    /// Thread of the log: it refuses further writes while a handle exists.
    #[cfg(test)]
    log_thread: Thread,
    rows_thread: Thread,
}

/// Writes a snapshot of a large state, which the next start reads fastest. Without it the start only takes
/// longer.
async fn leave_snapshot(mut machine: MachineStore, large_allocations: usize) {
    let applied = machine.shared.applied();
    let is_large = machine.shared.with(|state| state.allocations.len()) >= large_allocations;
    if !is_large || machine.headroom.room() != FreeSpace::Enough || is_near(machine.snapshots.last(), applied)
    {
        return;
    }
    machine.bytes_per_second = u64::MAX;
    if let Err(error) = machine.get_snapshot_builder().await.build_snapshot().await {
        tracing::warn!(%error, "no snapshot was left; the next start will take longer");
    }
}

impl Closer {
    /// Writes what isn't written yet and notes that all is clean. openraft must have been shut down before.
    ///
    /// # Errors
    /// When something can't be written; the next start then takes longer.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        self.log.close().await.map_err(|error| StoreError::Stopped(error.to_string()))?;
        let (done, wait) = oneshot::channel();
        self.notifier.send(Wakeup::Close(done));
        // In parallel with the remaining rows: if those take too long, the next start reads the snapshot.
        leave_snapshot(self.machine, self.large_allocations).await;
        wait.await.map_err(|_| StoreError::Stopped("the thread of the rows is gone".to_owned()))??;
        // The thread answers just before it ends, so this takes no time.
        self.rows_thread
            .ended()
            .await
            .map_err(|_| StoreError::Stopped("the thread of the rows has panicked".to_owned()))
    }

    /// Drops everything without writing; the threads end by themselves.
    #[cfg(test)]
    pub(super) fn abandon(self) -> Vec<Thread> {
        vec![self.log_thread, self.rows_thread]
    }
}
