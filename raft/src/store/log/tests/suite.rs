//! Storage suite of openraft, run on the stores of this crate.

use std::io;
use std::sync::{Arc, Mutex};

use futures::{Stream, StreamExt as _, stream};
use openraft::entry::RaftEntry as _;
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::alias::SnapshotMetaOf;
use openraft::{EntryPayload, OptionalSend, StorageError};
use tempfile::TempDir;

use crate::store::log::next;
use crate::store::{Closer, LogStore, MachineStore, SnapshotFile, open};
use crate::types::{Entry, LogId, StoredMembership, Types};

/// State machine for openraft's suite, which skips entries: missing ones are blank here.
struct Gapless(MachineStore);

impl RaftStateMachine<Types> for Gapless {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = <MachineStore as RaftStateMachine<Types>>::SnapshotBuilder;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        self.0.applied_state().await
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> io::Result<()>
    where
        Strm: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        while let Some(item) = entries.next().await {
            let (entry, responder) = item?;
            let due = next(self.0.applied_state().await?.0);
            let blank =
                |index| Entry { log_id: LogId { index, ..entry.log_id() }, payload: EntryPayload::Blank };
            let mut all: Vec<_> = (due..entry.log_id().index).map(|index| Ok((blank(index), None))).collect();
            all.push(Ok((entry, responder)));
            self.0.apply(stream::iter(all)).await?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        self.0.get_snapshot_builder().await
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMetaOf<Types>, file: SnapshotFile) -> io::Result<()> {
        self.0.install_snapshot(meta, file).await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<crate::store::snapshot::Snapshot>> {
        self.0.get_current_snapshot().await
    }
}

/// Directories and threads of all stores of the suite. They end together: a directory that is removed while
/// a thread writes to it stays.
#[derive(Default)]
struct Builder(Mutex<Vec<(Closer, TempDir)>>);

impl StoreBuilder<Types, LogStore, Gapless, ()> for Arc<Builder> {
    async fn build(&self) -> Result<((), LogStore, Gapless), StorageError<Types>> {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await.unwrap();
        self.0.lock().unwrap().push((store.closer, dir));
        Ok(((), store.log, Gapless(store.machine)))
    }
}

#[tokio::test]
async fn upstream_suite() {
    let builder = Arc::new(Builder::default());
    Suite::test_all(Arc::clone(&builder)).await.unwrap();
    let stores = std::mem::take(&mut *builder.0.lock().unwrap());
    for (closer, dir) in stores {
        for thread in closer.abandon() {
            thread.ended().await.unwrap();
        }
        dir.close().unwrap();
    }
}
