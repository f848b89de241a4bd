//! The state machine as openraft sees it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures::{Stream, StreamExt as _};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::type_config::alias::SnapshotMetaOf;
use openraft::{OptionalSend, RaftSnapshotBuilder};

use super::shared::SharedState;
use crate::store::directory::{Durable, Headroom, StoreCounters, background, unwind};
use crate::store::journal::JournalFiles;
use crate::store::snapshot::{Instant, Snapshot, SnapshotDir, SnapshotFile, Unwritable};
use crate::threads;
use crate::types::{LogId, Types};
use ipam_machine::Broken;

/// Entries that are handed to the thread that applies at once.
const CHUNK_ENTRIES_MAX: usize = 256;

type Membership = crate::types::StoredMembership;

/// State machine of openraft: applies committed entries, builds and installs snapshots.
#[derive(Clone)]
pub(crate) struct MachineStore {
    pub(in crate::store) shared: SharedState,
    pub(in crate::store) snapshots: Arc<SnapshotDir>,
    pub(in crate::store) durable: Arc<Durable>,
    pub(in crate::store) journal: Arc<JournalFiles>,
    pub(in crate::store) headroom: Arc<Headroom>,
    pub(in crate::store) counters: Arc<StoreCounters>,
    /// Pace at which snapshots are written.
    pub(crate) bytes_per_second: u64,
}

impl RaftStateMachine<Types> for MachineStore {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        let live = self.shared.live();
        Ok((live.applied, live.membership.clone()))
    }

    async fn apply<Strm>(&mut self, entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        let mut chunks = entries.ready_chunks(CHUNK_ENTRIES_MAX);
        while let Some(chunk) = chunks.next().await {
            self.shared.apply(chunk.into_iter().collect::<io::Result<_>>()?).await?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        // If the thread has ended, the member ends; until then the last state is as good as any.
        let _ended = self.shared.settle().await;
        let live = self.shared.live();
        Builder { point: live.point(), install_count: live.install_count, machine: self.clone() }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<Types>,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let (machine, meta) = (self.clone(), meta.clone());
        let shared = self.shared.clone();
        let received = background::run(move || {
            // Sealed segments that are only in memory would be lost with the replaced state.
            machine.journal.write_out(&machine.shared, true)?;
            let instant = machine.snapshots.install(snapshot, &meta)?;
            machine.journal.fit(&instant.state);
            machine.durable.set_snapshot(instant.applied);
            Ok(instant)
        });
        // The future is boxed because it holds whole states, and openraft's tasks contain it.
        self.shared.guard_io(Box::pin(async move { shared.replace(received.await?).await })).await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let snapshots = Arc::clone(&self.snapshots);
        Ok(blocking(move || snapshots.current()).await?.map(SnapshotFile::into_snapshot))
    }
}

/// Builds a snapshot of the state at the instant at which the builder was made.
pub(crate) struct Builder {
    point: Instant,
    /// Install count of that state.
    install_count: u64,
    machine: MachineStore,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let (mut point, mut install_count) = (self.point.clone(), self.install_count);
        let MachineStore { shared, snapshots, journal, headroom, bytes_per_second, .. } =
            self.machine.clone();
        let built = background::run(move || {
            headroom.make_room_for_snapshot();
            loop {
                shared.check_unbroken()?;
                // The log may be purged up to a durable snapshot, which has no sealed segments.
                journal.write_out(&shared, true)?;
                let is_present = || shared.live().install_count == install_count && shared.broken().is_none();
                if let Some(file) = snapshots.build(&point, bytes_per_second, is_present)? {
                    return Ok(file);
                }
                // Another state is in the place of this one, which may have been wrong.
                let live = shared.live();
                (point, install_count) = (live.point(), live.install_count);
            }
        });
        match self.machine.shared.guard_io(built).await {
            Ok(file) => {
                self.machine.counters.snapshots_built.fetch_add(1, Relaxed);
                self.machine.durable.set_snapshot(file.meta().last_log_id);
                Ok(file.into_snapshot())
            }
            Err(error) if Unwritable::is(&error) => self.go_on_without(&error).await,
            Err(error) => Err(error),
        }
    }
}

impl Builder {
    /// Returns the existing snapshot instead of an error, which would end the member. openraft treats a known
    /// snapshot as no news, so the member serves on, keeps its log, and retries when the next one is due.
    async fn go_on_without(&self, why: &io::Error) -> io::Result<Snapshot> {
        tracing::error!(%why, "no snapshot can be made of this state; the member serves on and keeps its log");
        self.machine.counters.snapshots_failed.fetch_add(1, Relaxed);
        let snapshots = Arc::clone(&self.machine.snapshots);
        let file =
            blocking(move || snapshots.current().and_then(|file| file.map_or_else(|| snapshots.none(), Ok)));
        Ok(file.await?.into_snapshot())
    }
}

/// Runs work where it may block, and waits for it. A broken invariant unwinds to the caller.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = threads::blocking(move || Broken::catch(work)).await.map_err(io::Error::other)?;
    done.unwrap_or_else(unwind)
}
