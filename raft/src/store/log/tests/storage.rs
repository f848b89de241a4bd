//! The log: groups, order, readable entries, and durability.

use std::sync::mpsc;

use futures::future::join_all;
use openraft::storage::{LogState, RaftLogStorage as _, RaftStateMachine as _};
use openraft::{RaftLogReader as _, RaftSnapshotBuilder as _};

use crate::store::log::thread::Command;
use crate::store::log::view::View;
use crate::store::tests::sample::{
    append, apply, entries, entry, kill, log_id, read_all, start, stop, submit, vote,
};
use crate::store::{Store, open};

/// Returns the number of flushes since the start.
fn flushes(store: &Store) -> u64 {
    store.counters.fsync.read().buckets.iter().sum()
}

#[tokio::test]
async fn appends_that_wait_together_share_one_flush() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    let (release, hold) = mpsc::channel();
    store.log.send(Command::Hold(hold)).unwrap();
    let mut waiting = Vec::new();
    for index in 0..64 {
        waiting.push(submit(&mut store.log, vec![entry(1, index)]).await.unwrap());
    }
    assert_eq!(read_all(&mut store.log).await, entries(1, 0..64), "readable before they are on disk");
    assert_eq!(flushes(&store), 0);
    drop(release);
    for done in join_all(waiting).await {
        done.unwrap();
    }
    assert_eq!(flushes(&store), 1);
    store.log.save_vote(&vote(1, false)).await.unwrap();
    assert_eq!(flushes(&store), 2, "a vote is on disk before it is cast");
}

#[tokio::test]
async fn a_vote_that_won_shares_the_flush_of_the_next_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    store.log.save_vote(&vote(1, false)).await.unwrap();
    store.log.save_vote(&vote(1, true)).await.unwrap();
    assert_eq!(flushes(&store), 1, "the vote is on disk already");
    assert_eq!(store.log.read_vote().await.unwrap(), Some(vote(1, true)));
    append(&mut store.log, entries(1, 0..1)).await;
    assert_eq!(flushes(&store), 2);
    store.log.save_vote(&vote(2, true)).await.unwrap();
    assert_eq!(flushes(&store), 3, "a leader that got no vote here");
    kill(store).await;
    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(store.log.read_vote().await.unwrap(), Some(vote(2, true)));
}

#[tokio::test]
async fn acknowledged_entries_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, entries(1, 0..20)).await;
    store.log.truncate_after(Some(log_id(1, 14))).await.unwrap();
    append(&mut store.log, entries(2, 15..30)).await;
    apply(&mut store, entries(1, 0..5)).await;
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    store.log.purge(log_id(1, 4)).await.unwrap();
    store.log.save_committed(Some(log_id(2, 20))).await.unwrap();
    append(&mut store.log, entries(2, 30..31)).await;
    store.log.save_committed(Some(log_id(2, 30))).await.unwrap();
    store.log.save_vote(&vote(3, true)).await.unwrap();
    kill(store).await;

    let mut store = open(dir.path()).await.unwrap();
    let expected = [entries(1, 5..15), entries(2, 15..31)].concat();
    assert_eq!(read_all(&mut store.log).await, expected);
    assert_eq!(store.log.read_vote().await.unwrap(), Some(vote(3, true)));
    let committed = store.log.read_committed().await.unwrap();
    assert_eq!(committed, Some(log_id(2, 20)), "each commit is written with the next entries");
    let state = store.log.get_log_state().await.unwrap();
    let expected = LogState { last_purged_log_id: Some(log_id(1, 4)), last_log_id: Some(log_id(2, 30)) };
    assert_eq!(state, expected);
    append(&mut store.log, entries(3, 31..32)).await;
    assert_eq!(read_all(&mut store.log).await.len(), 27, "what is on disk and what is in memory, joined");
    stop(store).await;
}

#[tokio::test]
async fn truncated_entries_stay_gone_after_a_kill_before_the_next_marker() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, entries(2, 0..20)).await;
    crate::store::tests::sample::write_behind(&store).await;
    // A leader of a later term whose own entry isn't in this log yet: the last log id decreases.
    store.log.truncate_after(Some(log_id(2, 9))).await.unwrap();
    store.log.save_vote(&vote(5, true)).await.unwrap();
    kill(store).await;
    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(read_all(&mut store.log).await, entries(2, 0..10));
    stop(store).await;
}

#[tokio::test]
async fn a_reading_with_a_limit_ends_early_and_never_leaves_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, entries(1, 0..20_000)).await;
    stop(store).await;
    let mut store = start(dir.path()).await;
    append(&mut store.log, entries(1, 20_000..20_001)).await;
    let piece = store.log.limited_get_log_entries(5, 20_001).await.unwrap();
    assert!(piece.len() > 1 && piece.len() < 19_000, "{}", piece.len());
    assert_eq!(piece, entries(1, 5..5 + piece.len() as u64));
    stop(store).await;
}

#[tokio::test]
async fn after_a_write_error_nothing_is_written_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, entries(1, 0..3)).await;
    let (release, hold) = mpsc::channel();
    store.log.send(Command::Hold(hold)).unwrap();
    // The file refuses a gap between entries, as a full disk would refuse any write.
    let bad = submit(&mut store.log, entries(1, 7..8)).await.unwrap();
    let queued = submit(&mut store.log, entries(1, 8..9)).await.unwrap();
    drop(release);
    assert!(bad.await.is_err());
    assert!(queued.await.is_err(), "what waited behind it isn't acknowledged either");
    store.failed.wait_for(Option::is_some).await.unwrap();
    assert!(submit(&mut store.log, entries(1, 9..10)).await.is_err());
    assert!(store.log.save_vote(&vote(9, false)).await.is_err());
    assert!(store.log.save_committed(Some(log_id(1, 1))).await.is_err());
    kill(store).await;
    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(read_all(&mut store.log).await, entries(1, 0..3));
    stop(store).await;
}

#[test]
fn the_tail_keeps_what_only_it_has() {
    let mut view = View::new(1, None, None);
    let first = view.append(&entries(1, 0..10));
    view.append(&entries(1, 10..20));
    assert_eq!(view.find(0..20, usize::MAX).hot.len(), 20, "nothing of it was passed on");
    view.pass_on(first);
    let found = view.find(0..20, usize::MAX);
    assert_eq!((found.cold, found.hot.len()), (Some(0..10), 10));
    assert!(view.truncate_after(Some(log_id(1, 4))));
    assert!(!view.truncate_after(Some(log_id(1, 4))), "beyond the end there is nothing to cut");
    view.append(&entries(2, 5..6));
    view.pass_on(first + 1);
    let found = view.find(0..20, usize::MAX);
    assert_eq!((found.cold, found.hot), (Some(0..5), entries(2, 5..6)));
}
