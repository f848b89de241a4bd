//! Snapshots: installed if intact, else refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use ipam_api::limits::ROW_BYTES_MAX;
use openraft::RaftSnapshotBuilder as _;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};

use super::directory::Snapshot;
use super::format;
use crate::store::tests::sample::{apply, entries, kill, log_id, run, start, stop, write_behind};
use crate::store::{SnapshotFile, Store, StoreError, open};
use ipam_machine::State;

async fn build(store: &mut Store) -> Snapshot {
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap()
}

/// Sends a snapshot in small pieces to another directory.
async fn send(snapshot: &mut SnapshotFile, dir: &Path) -> SnapshotFile {
    let mut incoming = SnapshotFile::incoming(dir).await.unwrap();
    let mut length = 0;
    loop {
        let piece = snapshot.read_piece(100).await.unwrap();
        if piece.is_empty() {
            break;
        }
        length += piece.len() as u64;
        incoming.write_piece(piece).await.unwrap();
    }
    assert_eq!(length, snapshot.length());
    incoming.seal_and_verify().await.unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir.join("snapshot")).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_snapshot_travels_and_lasts() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sender = open(from.path()).await.unwrap();
    run(&mut sender, entries(1, 0..500)).await;
    let digest = sender.shared.with(State::digest);
    let Snapshot { meta, mut snapshot } = build(&mut sender).await;
    assert_eq!(meta.last_log_id, Some(log_id(1, 499)));

    let mut receiver = open(to.path()).await.unwrap();
    // Another state, which must be replaced, rows included.
    run(&mut receiver, entries(1, 0..7)).await;
    write_behind(&receiver).await;
    let received = send(&mut snapshot, to.path()).await;
    assert_eq!(received.meta(), &meta);
    receiver.machine.install_snapshot(&meta, received).await.unwrap();
    assert_eq!(receiver.shared.with(State::digest), digest);
    assert_eq!(files(to.path()), ["current"]);
    receiver.log.purge(log_id(1, 499)).await.unwrap();
    // A start would rather load a snapshot than apply that many entries.
    run(&mut receiver, entries(1, 500..800)).await;
    write_behind(&receiver).await;
    let digest = receiver.shared.with(State::digest);
    kill(receiver).await;

    let receiver = open(to.path()).await.unwrap();
    assert_eq!(receiver.shared.applied(), Some(log_id(1, 799)), "the rows have the new state");
    assert_eq!(receiver.shared.with(State::digest), digest);
    stop(receiver).await;
    stop(sender).await;
}

#[tokio::test]
async fn a_kill_right_after_installing_keeps_the_snapshot() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sender = open(from.path()).await.unwrap();
    apply(&mut sender, entries(1, 0..50)).await;
    let Snapshot { meta, mut snapshot } = build(&mut sender).await;
    let mut receiver = open(to.path()).await.unwrap();
    let received = send(&mut snapshot, to.path()).await;
    receiver.machine.install_snapshot(&meta, received).await.unwrap();
    write_behind(&receiver).await;
    kill(receiver).await;
    let receiver = start(to.path()).await;
    assert_eq!(receiver.shared.with(State::digest), sender.shared.with(State::digest));
    stop(receiver).await;
}

#[tokio::test]
async fn a_snapshot_damaged_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..5)).await;
    build(&mut store).await;
    stop(store).await;
    let path = dir.path().join("snapshot/current");
    let content = fs::read(&path).unwrap();
    format::verify(content.as_slice()).unwrap();
    for offset in 0..content.len() {
        let mut altered = content.clone();
        altered[offset] ^= 1 << (offset % 8);
        assert!(format::verify(altered.as_slice()).is_err(), "flip at {offset}");
        assert!(format::verify(&content[..offset]).is_err(), "cut at {offset}");
    }
    assert!(format::verify([content.as_slice(), &[0]].concat().as_slice()).is_err());

    fs::write(&path, &content[..content.len() - 1]).unwrap();
    let error = open(dir.path()).await.err().unwrap();
    assert!(matches!(&error, StoreError::Damaged { path: found, .. } if *found == path), "{error}");

    let mut incoming = SnapshotFile::incoming(dir.path()).await.unwrap();
    incoming.write_piece(content[..content.len() - 1].to_vec().into()).await.unwrap();
    assert!(incoming.seal_and_verify().await.is_err());
    assert_eq!(files(dir.path()), ["current"], "what was refused is gone");
}

#[tokio::test]
async fn an_older_snapshot_never_replaces_a_newer() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..5)).await;
    let point = store.shared.live().point();
    run(&mut store, entries(1, 5..9)).await;
    build(&mut store).await;
    let current = store.machine.snapshots.build(&point, u64::MAX, || true).unwrap().unwrap();
    assert_eq!(current.meta().last_log_id, Some(log_id(1, 8)));
    assert_eq!(files(dir.path()), ["current"]);
    stop(store).await;
}

#[tokio::test]
async fn leftovers_go_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    stop(open(dir.path()).await.unwrap()).await;
    fs::write(dir.path().join("snapshot/unfinished-7"), "half").unwrap();
    stop(open(dir.path()).await.unwrap()).await;
    assert!(files(dir.path()).is_empty());
}

/// A receiver may be slow; the space of the snapshot is freed once it has all of it.
#[tokio::test]
async fn a_snapshot_that_is_read_stays_whole_when_another_takes_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..5)).await;
    build(&mut store).await;
    let mut reading = store.machine.snapshots.current().unwrap().unwrap();
    let old = fs::File::open(dir.path().join("snapshot/current")).unwrap();
    run(&mut store, entries(1, 5..9)).await;
    build(&mut store).await;
    let mut content = Vec::new();
    loop {
        let piece = reading.read_piece(64).await.unwrap();
        if piece.is_empty() {
            break;
        }
        content.extend_from_slice(&piece);
    }
    assert_eq!(content.len() as u64, reading.length());
    format::verify(content.as_slice()).unwrap();
    drop(reading);
    while old.metadata().unwrap().len() > 0 {
        tokio::task::yield_now().await;
    }
    stop(store).await;
}

/// An error of the builder would make openraft end the member, and a restart wouldn't help.
#[tokio::test]
async fn a_state_of_which_no_snapshot_can_be_made_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..5)).await;
    let mut id = store.shared.spoil(|state| state.spoil_with_answer(ROW_BYTES_MAX + 5));
    // There is no snapshot yet.
    assert_eq!(build(&mut store).await.meta.last_log_id, None);
    store.shared.spoil(move |state| state.mend_of_answer(id));
    assert_eq!(build(&mut store).await.meta.last_log_id, Some(log_id(1, 4)));
    run(&mut store, entries(1, 5..9)).await;
    id = store.shared.spoil(|state| state.spoil_with_answer(ROW_BYTES_MAX + 5));
    assert_eq!(build(&mut store).await.meta.last_log_id, Some(log_id(1, 4)), "the one that is there");
    assert_eq!(files(dir.path()), ["current"], "nothing half is left");
    let counted = || {
        let (built, failed) = (&store.counters.snapshots_built, &store.counters.snapshots_failed);
        (built.load(Relaxed), failed.load(Relaxed))
    };
    assert_eq!(counted(), (1, 2));
    // Backups have the same writer; its error names the row.
    let point = store.shared.live().point();
    let error = format::write(std::io::sink(), &point).unwrap_err();
    let named = format!("the row of kept answer {id} has ");
    assert!(error.to_string().starts_with(&named) && error.to_string().contains("8388608"), "{error}");
    store.shared.spoil(move |state| state.mend_of_answer(id));
    assert_eq!(build(&mut store).await.meta.last_log_id, Some(log_id(1, 8)));
    stop(store).await;
}
