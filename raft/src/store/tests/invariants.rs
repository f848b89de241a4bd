//! A broken invariant ends the member wherever its state is read or written, and names itself.

use std::fs;
use std::path::Path;

use openraft::RaftSnapshotBuilder as _;
use openraft::storage::RaftStateMachine as _;
use tokio::sync::oneshot;

use crate::store::rows::Wakeup;
use crate::store::tests::sample::{entries, kill, network, run, start, write_behind};
use crate::store::{
    BREAKING_TO_LOAD, BREAKING_TO_SEND, BREAKING_TO_WRITE, Quarantine, SnapshotFile, Source, Store,
    StoreError, StoreFailure, open,
};

/// A store with a network of this name.
async fn with_network(dir: &Path, name: &str) -> Store {
    let mut store = start(dir).await;
    run(&mut store, entries(1, 0..5)).await;
    run(&mut store, vec![network(5, name)]).await;
    store
}

/// A store with such a network, and with a snapshot.
async fn with_snapshot(dir: &Path) -> Store {
    let mut store = with_network(dir, BREAKING_TO_LOAD).await;
    store.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    store
}

/// Checks that the store reports the broken invariant, and that its state can't be read any more.
async fn assert_ended(store: &mut Store, detail: &str) {
    let failed = store.failed.wait_for(Option::is_some).await.unwrap().clone();
    let Some(StoreFailure::Broken(broken)) = failed else { panic!("{failed:?}") };
    assert_eq!((broken.invariant, &*broken.detail), ("a row of a test breaks nothing", detail));
    assert_eq!(store.shared.broken(), Some(broken));
}

/// Checks that a data directory isn't opened, for a broken invariant.
async fn assert_refused(dir: &Path) {
    match open(dir).await.err() {
        Some(StoreError::Broken(broken)) => assert_eq!(broken.detail, BREAKING_TO_LOAD),
        other => panic!("{other:?}"),
    }
    let mut names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.any(|name| name.to_string_lossy().starts_with("rows.damaged-")), "rows are put aside");
    assert_eq!(Quarantine::load(dir).unwrap(), None);
}

#[tokio::test]
async fn rows_that_break_an_invariant_are_not_rebuilt_but_end_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_network(dir.path(), BREAKING_TO_LOAD).await;
    write_behind(&store).await;
    kill(store).await;
    assert_refused(dir.path()).await;
}

#[tokio::test]
async fn a_snapshot_that_breaks_an_invariant_ends_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_snapshot(dir.path()).await;
    write_behind(&store).await;
    kill(store).await;
    assert_refused(dir.path()).await;
}

#[tokio::test]
async fn a_received_snapshot_that_breaks_an_invariant_ends_the_member_before_it_is_kept() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sender = with_snapshot(from.path()).await;
    let mut file = sender.machine.get_current_snapshot().await.unwrap().unwrap().snapshot;
    let mut receiver = start(to.path()).await;
    let mut incoming = SnapshotFile::incoming(to.path()).await.unwrap();
    incoming.write_piece(file.read_piece(1 << 20).await.unwrap()).await.unwrap();
    let verified = receiver.shared.guard_io(incoming.seal_and_verify()).await;
    assert!(verified.unwrap_err().to_string().contains("a row of a test breaks nothing"));
    assert_ended(&mut receiver, BREAKING_TO_LOAD).await;
    assert_eq!(fs::read_dir(to.path().join("snapshot")).unwrap().count(), 0, "it is not kept");
}

#[tokio::test]
async fn an_installed_snapshot_that_breaks_an_invariant_ends_the_member() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sender = with_snapshot(from.path()).await;
    let sent = sender.machine.get_current_snapshot().await.unwrap().unwrap();
    let mut receiver = start(to.path()).await;
    let installed = receiver.machine.install_snapshot(&sent.meta, sent.snapshot).await;
    assert!(installed.unwrap_err().to_string().contains("a row of a test breaks nothing"));
    assert_ended(&mut receiver, BREAKING_TO_LOAD).await;
    assert_eq!(receiver.shared.applied(), None);
}

#[tokio::test]
async fn a_state_made_again_that_breaks_an_invariant_ends_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = with_snapshot(dir.path()).await;
    let log = store.log.clone();
    let rebuilt = store.machine.rebuild(log, Source::Own).await;
    assert!(rebuilt.unwrap_err().to_string().contains("a row of a test breaks nothing"));
    assert_ended(&mut store, BREAKING_TO_LOAD).await;
}

#[tokio::test]
async fn a_snapshot_that_can_not_be_written_for_a_broken_invariant_ends_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = with_network(dir.path(), BREAKING_TO_SEND).await;
    let built = store.machine.get_snapshot_builder().await.build_snapshot().await;
    assert!(built.err().unwrap().to_string().contains("a row of a test breaks nothing"));
    assert_ended(&mut store, BREAKING_TO_SEND).await;
    store.closer.close().await.unwrap_err();
}

#[tokio::test]
async fn rows_that_can_not_be_written_for_a_broken_invariant_end_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let marker = || fs::read(dir.path().join("marker")).unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..5)).await;
    write_behind(&store).await;
    let marked = marker();
    run(&mut store, vec![network(5, BREAKING_TO_WRITE)]).await;
    let (done, wait) = oneshot::channel();
    store.closer.notifier.send(Wakeup::Flush(done));
    assert!(wait.await.is_err(), "the thread of the rows has ended");
    assert_ended(&mut store, BREAKING_TO_WRITE).await;
    assert_eq!(marker(), marked);
    store.closer.close().await.unwrap_err();
}
