//! Rebuild of a wrong state while the store runs.

use std::path::Path;
use std::pin::pin;
use std::sync::mpsc;
use std::{fs, thread};

use futures::stream;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};
use openraft::{EntryPayload, RaftSnapshotBuilder as _};

use crate::progress::Progress;
use crate::store::journal::EventQuery;
use crate::store::tests::sample::{command, entries, entry, log_id, run, start, stop, write_behind};
use crate::store::{BREAKING_REQUEST, SnapshotFile, Source, Store, StoreFailure};
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::command::Text;
use ipam_machine::{Action, At, Broken, Command, State, apply, broken};

/// Applies a change that no log entry has.
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

/// Blocks the apply thread until the result is dropped.
fn hold(store: &Store) -> mpsc::Sender<()> {
    let (release, until) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let shared = store.shared.clone();
    thread::spawn(move || {
        shared.spoil(move |_| {
            begun.send(()).unwrap();
            until.recv()
        })
    });
    begins.recv().unwrap();
    release
}

#[tokio::test]
async fn entries_that_lag_are_in_the_state_that_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..50)).await;
    store.shared.allow_lag();
    let release = hold(&store);
    run(&mut store, entries(1, 50..60)).await;
    assert_eq!(store.shared.applied(), Some(log_id(1, 49)), "they lag");
    {
        let log = store.log.clone();
        let mut rebuild = pin!(store.machine.rebuild(log, Source::Own));
        assert!(futures::poll!(rebuild.as_mut()).is_pending());
        drop(release);
        rebuild.await.unwrap();
    }
    assert_eq!(store.shared.applied(), Some(log_id(1, 59)));
    run(&mut store, entries(1, 60..70)).await;
    store.shared.settle().await.unwrap();
    let other = tempfile::tempdir().unwrap();
    let mut right = start(other.path()).await;
    run(&mut right, entries(1, 0..70)).await;
    assert_eq!(digest(&store), digest(&right));
    stop(right).await;
    stop(store).await;
}

#[tokio::test]
async fn an_entry_after_a_gap_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..3)).await;
    let item = Ok((entry(1, 4), None));
    let refused = store.machine.apply(stream::iter([item])).await.unwrap_err();
    assert!(refused.to_string().contains("entry 3 is due"), "{refused}");
    assert_eq!(store.shared.applied(), Some(log_id(1, 2)));
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
    incoming.write_piece(all).await.unwrap();
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
    let built = store.machine.snapshots.load_current(&Progress::default()).unwrap().unwrap();
    assert_eq!(built.state.digest(), right);
    stop(store).await;
}

/// Changes the state in part, then finds an invariant broken.
fn break_state(store: &Store, found: &Broken) {
    let (shared, found) = (store.shared.clone(), found.clone());
    let change = move |state: &mut State| {
        apply(state, At::default(), &command(1_000)).0.unwrap();
        broken(found.invariant, found.detail)
    };
    assert!(thread::spawn(move || shared.spoil(change)).join().is_err(), "the thread that applies has ended");
}

#[tokio::test]
async fn nothing_is_published_or_written_of_a_state_that_breaks_an_invariant() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 0..100)).await;
    write_behind(&store).await;
    let marker = || fs::read(dir.path().join("marker")).unwrap();
    let (right, marked) = (digest(&store), marker());
    let found = Broken { invariant: "an allocation has its pool", detail: "allocation 7".to_owned() };
    break_state(&store, &found);
    // The caller's channel is dropped while the thread unwinds, before the failure is noted.
    let failed = store.failed.wait_for(Option::is_some).await.unwrap().clone();
    assert_eq!(failed, Some(StoreFailure::Broken(found.clone())));
    assert_eq!((store.shared.broken(), digest(&store)), (Some(found.clone()), right));
    assert!(store.shared.apply(Vec::new()).await.is_err(), "the thread applies nothing more");
    let built = store.machine.get_snapshot_builder().await.build_snapshot().await;
    assert!(built.err().unwrap().to_string().contains(found.invariant), "no snapshot is made of it");
    let log = store.log.clone();
    store.machine.rebuild(log, Source::Own).await.unwrap_err();
    store.closer.close().await.unwrap_err();
    assert_eq!(marker(), marked, "not even the end of the log is noted as clean");
}

/// Applies four entries, and returns the failure of the member. The third entry has this command. No client
/// waits for these entries, so no answer stops raft in time.
async fn failure_after(third: Command) -> Option<StoreFailure> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = start(dir.path()).await;
    store.shared.allow_lag();
    let mut all = entries(1, 0..4);
    let opened = Opened {
        leadership: Leadership::Number(0),
        log_time_ms: 1_002,
        wall_ms: 2_002,
        commands: vec![third],
    };
    all[2].payload = EntryPayload::Normal(Batch::seal(&opened).unwrap());
    for entry in all {
        let item = Ok((entry, None));
        let _refused = store.machine.apply(stream::iter([item])).await;
        // Each entry is a separate job.
        let _ended = store.shared.settle().await;
    }
    assert_eq!(store.shared.applied(), Some(log_id(1, 1)));
    store.failed.borrow().clone()
}

#[tokio::test]
async fn nothing_is_applied_after_an_entry_that_cannot_be_applied() {
    let unknown = Command { action: Action::RaiseLevel { level: u32::MAX }, ..command(2) };
    let failed = failure_after(unknown).await;
    assert!(
        matches!(&failed, Some(StoreFailure::Disk(why)) if why.contains("can't be applied")),
        "{failed:?}"
    );
}

#[tokio::test]
async fn an_entry_that_breaks_an_invariant_ends_the_member_for_it() {
    let mut breaking = command(2);
    breaking.origin.request_id = Text::given(BREAKING_REQUEST);
    let failed = failure_after(breaking).await;
    assert!(matches!(&failed, Some(StoreFailure::Broken(_))), "{failed:?}");
}
