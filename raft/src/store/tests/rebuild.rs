//! A wrong state made again while everything goes on.

use std::fs;
use std::path::Path;

use openraft::RaftSnapshotBuilder as _;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};

use super::sample::{command, entries, log_id, run, start, stop, write_behind};
use crate::machine::{At, State, apply};
use crate::progress::Progress;
use crate::store::journal::EventQuery;
use crate::store::open::Store;
use crate::store::{SnapshotFile, Source};

/// Applies what no log entry says.
fn spoil(store: &Store) {
    store.shared.spoil(|state| {
        apply(state, At::default(), &command(1_000)).0.unwrap();
    });
}

fn digest(store: &Store) -> u128 {
    store.shared.with(State::digest)
}

fn events(store: &Store) -> Vec<String> {
    let query = EventQuery { limit: 10_000, ..EventQuery::default() };
    store.journal.page(&query).unwrap().events.iter().map(|event| format!("{event:?}")).collect()
}

async fn snapshot(store: &mut Store) {
    store.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
}

fn rows_put_aside(dir: &Path) -> bool {
    fs::read_dir(dir)
        .unwrap()
        .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("rows.damaged-"))
}

#[tokio::test]
async fn its_own_snapshot_and_log_make_the_state_again_with_rows_and_history() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..100)).await;
    snapshot(&mut store).await;
    store.log.purge(log_id(1, 60)).await.unwrap();
    run(&mut store, entries(1, 100..130)).await;
    write_behind(&store).await;
    let (right, history, noted) = (digest(&store), events(&store), store.shared.checkpoints());
    spoil(&store);
    write_behind(&store).await;
    assert_ne!(digest(&store), right);
    let log = store.log.clone();
    store.machine.rebuild(log, Source::Own).await.unwrap();
    assert_eq!((digest(&store), events(&store)), (right, history.clone()));
    let again = store.shared.checkpoints();
    assert_eq!(again, noted[noted.len() - again.len()..], "what was passed again is noted again");
    write_behind(&store).await;
    assert!(rows_put_aside(dir.path()));
    run(&mut store, entries(1, 130..140)).await;
    let later = digest(&store);
    stop(store).await;
    let store = start(dir.path()).await;
    assert_eq!(digest(&store), later);
    assert_eq!(events(&store)[..history.len()], history);
    stop(store).await;
}

#[tokio::test]
async fn without_a_snapshot_the_log_alone_makes_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..70)).await;
    let right = digest(&store);
    spoil(&store);
    let log = store.log.clone();
    store.machine.rebuild(log, Source::Own).await.unwrap();
    assert_eq!(digest(&store), right);
    stop(store).await;
}

#[tokio::test]
async fn a_snapshot_that_is_older_than_its_own_is_refused_and_changes_nothing() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..50)).await;
    snapshot(&mut store).await;
    let before = digest(&store);
    let mut sender = start(other.path()).await;
    run(&mut sender, entries(1, 0..40)).await;
    snapshot(&mut sender).await;
    let mut file = sender.machine.get_current_snapshot().await.unwrap().unwrap().snapshot;
    let mut incoming = SnapshotFile::incoming(dir.path()).await.unwrap();
    let all = file.read_piece(1 << 20).await.unwrap();
    incoming.write_piece(&all).await.unwrap();
    let received = incoming.seal_and_verify().await.unwrap();
    let log = store.log.clone();
    let refused = store.machine.rebuild(log, Source::Peer(Box::new(received))).await.unwrap_err();
    assert!(refused.to_string().contains("doesn't fit"), "{refused}");
    assert_eq!(digest(&store), before);
    stop(sender).await;
    stop(store).await;
}

#[tokio::test]
async fn a_snapshot_begun_before_is_not_of_the_wrong_state() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..50)).await;
    let right = digest(&store);
    spoil(&store);
    let mut builder = store.machine.get_snapshot_builder().await;
    let log = store.log.clone();
    store.machine.rebuild(log, Source::Own).await.unwrap();
    builder.build_snapshot().await.unwrap();
    let (_, state, _) = store.machine.snapshots.load_current(&Progress::default()).unwrap().unwrap();
    assert_eq!(state.digest(), right);
    stop(store).await;
}
