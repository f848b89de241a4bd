//! The state machine as openraft sees it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures::{Stream, StreamExt as _};
use openraft::entry::RaftEntry as _;
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, StoredMembership};

use super::background;
use super::checkpoints::Checkpoints;
use super::counters::StoreCounters;
use super::durable::Durable;
use super::error::StoreError;
use super::headroom::Headroom;
use super::journal::JournalFiles;
use super::live::{Instant, Live};
use super::restore::Restored;
use super::shared::SharedState;
use super::snapshot::Unwritable;
use super::snapshot_dir::{SnapshotDir, SnapshotFile};
use crate::batch::{Leadership, Opened};
use crate::machine::level::check_known;
use crate::machine::{self, Action, At};
use crate::types::{Entry, LogId, Member, Outcomes, Types};

/// Entries that are handed to the thread that applies at once.
const CHUNK_ENTRIES_MAX: usize = 256;

pub(super) type Snapshot = SnapshotOf<Types, SnapshotFile>;
type Membership = crate::types::StoredMembership;
type LeaderId = openraft::type_config::alias::LeaderIdOf<Types>;

/// Applies what is committed, builds and installs snapshots.
#[derive(Clone)]
pub(crate) struct MachineStore {
    pub(super) shared: SharedState,
    pub(super) snapshots: Arc<SnapshotDir>,
    pub(super) durable: Arc<Durable>,
    pub(super) journal: Arc<JournalFiles>,
    pub(super) headroom: Arc<Headroom>,
    pub(super) counters: Arc<StoreCounters>,
    /// How fast snapshots are written.
    pub(crate) bytes_per_second: u64,
}

/// An entry that was decoded and checked, and can be applied.
pub(super) struct Ready {
    log_id: LogId,
    work: Work,
    responder: Option<ApplyResponder<Types>>,
}

enum Work {
    Nothing,
    Commands(Opened),
    Membership(Membership),
}

impl Ready {
    pub(super) fn new((entry, responder): EntryResponder<Types>) -> io::Result<Self> {
        let log_id = entry.log_id();
        let Entry { payload, .. } = entry;
        let work = match payload {
            EntryPayload::Blank => Work::Nothing,
            // Fatal: skipping it would make this replica another than the rest.
            EntryPayload::Normal(batch) => {
                let opened = batch.open().map_err(io::Error::other)?;
                // Fatal too, and before anything of it is applied: what follows has rules that aren't known here.
                for command in &opened.commands {
                    if let Action::RaiseLevel { level } = command.action {
                        check_known(level).map_err(io::Error::other)?;
                    }
                }
                Work::Commands(opened)
            }
            EntryPayload::Membership(membership) => {
                Work::Membership(StoredMembership::new(Some(log_id), membership))
            }
        };
        Ok(Self { log_id, work, responder })
    }

    /// Returns how many commands there were, and whom to tell what became of them.
    pub(super) fn apply(self, live: &mut Live) -> (usize, Option<(ApplyResponder<Types>, Outcomes)>) {
        live.applied = Some(self.log_id);
        let is_checkpoint = Checkpoints::is_due(self.log_id.index, matches!(self.work, Work::Commands(_)));
        let mut outcomes = Outcomes::default();
        match self.work {
            Work::Nothing => {}
            Work::Membership(membership) => live.membership = membership,
            Work::Commands(Opened { leadership, log_time_ms, wall_ms, commands }) => {
                let leadership = match leadership {
                    Leadership::Begins { grace_ms } => {
                        live.state.begin_leadership(self.log_id.index, grace_ms);
                        self.log_id.index
                    }
                    Leadership::Number(number) => number,
                };
                let at = At { log_time_ms, wall_ms, leadership };
                let mut begun = std::time::Instant::now();
                for command in &commands {
                    let (outcome, _happened) = machine::carry_out(&mut live.state, at, command);
                    outcomes.all.push(outcome);
                    let ended = std::time::Instant::now();
                    outcomes.took.push(ended.saturating_duration_since(begun));
                    begun = ended;
                }
            }
        }
        if is_checkpoint {
            Arc::make_mut(&mut live.checkpoints).note(self.log_id.index, &live.state);
        }
        (outcomes.all.len(), self.responder.map(|responder| (responder, outcomes)))
    }
}

impl RaftStateMachine<Types> for MachineStore {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        Ok(self.shared.applied_state())
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
        let live = self.shared.live();
        Builder {
            epoch: live.epoch,
            point: live.point(),
            shared: self.shared.clone(),
            snapshots: Arc::clone(&self.snapshots),
            durable: Arc::clone(&self.durable),
            journal: Arc::clone(&self.journal),
            counters: Arc::clone(&self.counters),
            bytes_per_second: self.bytes_per_second,
            headroom: Arc::clone(&self.headroom),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<Types>,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let (snapshots, meta) = (Arc::clone(&self.snapshots), meta.clone());
        let (journal, shared) = (Arc::clone(&self.journal), self.shared.clone());
        let durable = Arc::clone(&self.durable);
        background::run(move || {
            // What is sealed and only in memory would have to be fetched again.
            journal.write_out(&shared, true)?;
            let (state, blocks) = snapshots.install(snapshot, &meta)?;
            journal.fit(&state);
            let (applied, membership) = (meta.last_log_id, meta.last_membership);
            durable.set_snapshot(applied);
            shared.replace(Instant { state, applied, membership, journal: blocks })
        })
        .await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let snapshots = Arc::clone(&self.snapshots);
        Ok(blocking(move || snapshots.current()).await?.map(SnapshotFile::into_snapshot))
    }
}

impl MachineStore {
    /// Makes of a restored state, if one waits, the one that the founders' cluster begins with: as if the entry
    /// that says who they are had come first and brought it along, and were only in the snapshot any more.
    pub(crate) async fn begin_restored(
        &mut self,
        dir: &Path,
        founders: &BTreeMap<u64, Member>,
    ) -> Result<(), StoreError> {
        if self.shared.applied_state().0.is_some() || Restored::waiting_in(dir)?.is_none() {
            return Ok(());
        }
        let first = LogId { leader_id: LeaderId { term: 0, node_id: 0 }, index: 0 };
        let voters = vec![founders.keys().copied().collect()];
        let membership = openraft::Membership::new(voters, founders.clone());
        let membership = membership.map_err(|error| StoreError::damaged(dir, error.to_string()))?;
        let membership = StoredMembership::new(Some(first), membership);
        let (snapshots, journal, path) =
            (Arc::clone(&self.snapshots), Arc::clone(&self.journal), dir.to_owned());
        let (durable, shared) = (Arc::clone(&self.durable), self.shared.clone());
        let begun = blocking(move || {
            let (state, blocks) = Restored::load(&path)?;
            journal.look_again(&state);
            let instant = Instant { state, applied: Some(first), membership, journal: blocks };
            snapshots.build(&instant, u64::MAX, || true)?;
            durable.set_snapshot(instant.applied);
            shared.replace(instant)
        });
        begun.await.map_err(StoreError::io(dir))
    }
}

/// Builds a snapshot of the state at the instant at which the builder was made.
pub(crate) struct Builder {
    point: Instant,
    /// Which state that is of.
    epoch: u64,
    shared: SharedState,
    snapshots: Arc<SnapshotDir>,
    durable: Arc<Durable>,
    journal: Arc<JournalFiles>,
    counters: Arc<StoreCounters>,
    bytes_per_second: u64,
    headroom: Arc<Headroom>,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let (mut point, mut epoch) = (self.point.clone(), self.epoch);
        let snapshots = Arc::clone(&self.snapshots);
        let (journal, shared) = (Arc::clone(&self.journal), self.shared.clone());
        let bytes_per_second = self.bytes_per_second;
        let headroom = Arc::clone(&self.headroom);
        let file = background::run(move || {
            headroom.make_room_for_snapshot();
            loop {
                // The log may be purged of what a durable snapshot holds, and that holds no sealed segments.
                journal.write_out(&shared, true)?;
                let is_present = || shared.epoch() == epoch;
                if let Some(file) = snapshots.build(&point, bytes_per_second, is_present)? {
                    return Ok(file);
                }
                // Another state is in the place of this one, which may have been wrong.
                let live = shared.live();
                (point, epoch) = (live.point(), live.epoch);
            }
        })
        .await;
        match file {
            Ok(file) => {
                self.counters.snapshots_built.fetch_add(1, Relaxed);
                self.durable.set_snapshot(file.meta().last_log_id);
                Ok(file.into_snapshot())
            }
            Err(error) if Unwritable::is(&error) => self.go_on_without(&error).await,
            Err(error) => Err(error),
        }
    }
}

impl Builder {
    /// Returns the snapshot that is there already: to openraft an error is the end of the member, and one that it
    /// knows is nothing new. So the member serves on, keeps its log, and tries again when the next one is due.
    async fn go_on_without(&self, why: &io::Error) -> io::Result<Snapshot> {
        tracing::error!(%why, "no snapshot can be made of this state; the member serves on and keeps its log");
        self.counters.snapshots_failed.fetch_add(1, Relaxed);
        let snapshots = Arc::clone(&self.snapshots);
        let file =
            blocking(move || snapshots.current().and_then(|file| file.map_or_else(|| snapshots.none(), Ok)));
        Ok(file.await?.into_snapshot())
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
