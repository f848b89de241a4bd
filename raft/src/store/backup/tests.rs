//! Backups of a store with a long history, restored: the same state in another epoch, with every event.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ipam_api::backup::check;
use ipam_api::time::Timestamp;
use openraft::storage::RaftStateMachine as _;
use openraft::{RaftSnapshotBuilder as _, StorageHelper};

use super::restore;
use super::write::{Backup, Source};
use crate::store::journal::EventFilter;
use crate::store::journal::tests::pages::{Naive, pages};
use crate::store::tests::sample::{network, run, start, stop};
use crate::store::{
    BREAKING_TO_LOAD, RestoreError, Restored, Store, StoreError, StoreFailure, Survivor, open,
};
use crate::types::Member;
use ipam_machine::State;

fn backup(store: &Store, history: bool) -> Backup {
    let source = Source { cluster: "c".to_owned(), member: "a".to_owned(), taken_at: Timestamp(77) };
    Backup::take(&store.shared, &store.journal, source, history).unwrap()
}

fn founders() -> BTreeMap<u64, Member> {
    let member = |name: &str| Member { name: name.to_owned(), ..Member::default() };
    BTreeMap::from([(1, member("a")), (2, member("b"))])
}

/// Opens a restored directory as its founder does.
async fn found(dir: &Path) -> Store {
    let mut store = open(dir).await.unwrap();
    store.machine.begin_restored(dir, &founders()).await.unwrap();
    let first =
        StorageHelper::new(&mut store.log, &mut store.machine).with_id(1).get_initial_state().await.unwrap();
    assert_eq!(first.membership_state.effective().voter_ids().collect::<Vec<_>>(), [1, 2]);
    store
}

#[tokio::test]
async fn a_restored_store_has_the_same_rows_and_all_of_the_history() {
    let (dir, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut naive = Naive::new();
    let mut store = start(dir.path()).await;
    run(&mut store, naive.entries(250)).await;
    let file = aside.path().join("b");
    let taken = backup(&store, true);
    // Later changes aren't in the backup.
    let (state, events) = (naive.state.clone(), naive.events.clone());
    run(&mut store, naive.entries(50)).await;
    taken.write(fs::File::create(&file).unwrap()).unwrap();
    stop(store).await;
    let header = check(fs::File::open(&file).unwrap()).unwrap().header;
    assert!(header.segments >= 5, "{header:?}");
    assert_eq!((header.revision, header.counts.events), (state.revision(), events.len() as u64));

    let restored = aside.path().join("data");
    // The machine refuses this epoch after the directory is locked; a repetition finds the directory usable.
    assert!(matches!(restore(&file, &restored, Some(u64::MAX), 9_000), Err(RestoreError::Epoch(_))));
    restore(&file, &restored, None, 9_000).unwrap();
    assert!(matches!(restore(&file, &restored, None, 9_000), Err(RestoreError::NotEmpty(_))));
    let mut wanted = state.clone();
    wanted.begin_epoch(2, 9_000, true).unwrap();
    let store = found(&restored).await;
    assert_eq!(store.shared.with(State::digest), wanted.digest());
    assert!(store.shared.view().rows().eq(wanted.rows()));
    assert!(store.journal.missing().is_empty());
    let found_events = pages(&store, 100, false, &EventFilter::default()).unwrap();
    assert_eq!(found_events[..events.len()], events);
    assert_eq!(found_events[events.len()].kind.name(), "epoch.begun");
    stop(store).await;
    // A later start continues with the restored state, and doesn't begin again.
    let store = found(&restored).await;
    assert_eq!(store.shared.with(State::digest), wanted.digest());
    assert!(store.journal.missing().is_empty());
    stop(store).await;
}

#[tokio::test]
async fn without_its_history_a_restored_store_misses_none() {
    let (dir, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut naive = Naive::new();
    let mut store = start(dir.path()).await;
    run(&mut store, naive.entries(250)).await;
    let file = aside.path().join("b");
    backup(&store, false).write(fs::File::create(&file).unwrap()).unwrap();
    stop(store).await;
    let restored = aside.path().join("data");
    restore(&file, &restored, Some(9), 9_000).unwrap();
    let store = found(&restored).await;
    assert_eq!(store.shared.with(State::revision) >> 40, 9);
    assert!(store.journal.missing().is_empty());
    let newest = pages(&store, 100, false, &EventFilter::default()).unwrap();
    assert!(
        newest.len() < naive.events.len()
            && newest.iter().any(|event| event.kind.name() == "journal.trimmed")
    );
    stop(store).await;
}

#[tokio::test]
async fn a_restore_that_was_broken_off_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Restored::waiting_in(dir.path()).unwrap(), None);
    fs::write(dir.path().join("restore-unfinished"), "").unwrap();
    let why = Restored::waiting_in(dir.path()).unwrap_err().to_string();
    assert!(why.contains("broken off"), "{why}");
}

/// Entries that rows and snapshot lack are in the log, acknowledged or not; and nothing is changed.
#[tokio::test]
async fn a_survivor_gives_all_of_its_log_and_stays_as_it_was() {
    let (dir, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut naive = Naive::new();
    let mut store = start(dir.path()).await;
    let entries = naive.entries(120);
    run(&mut store, entries[..100].to_vec()).await;
    crate::store::tests::sample::append(&mut store.log, entries[100..].to_vec()).await;
    let mut identity = crate::store::Identity::load_or_create(dir.path(), "a").unwrap_or_else(|_| {
        let other = tempfile::tempdir().unwrap();
        crate::store::Identity::load_or_create(other.path(), "a").unwrap()
    });
    identity.cluster_id = Some("c".to_owned());
    identity.save(dir.path()).unwrap();
    fs::write(dir.path().join("lock"), "").unwrap();
    crate::store::tests::sample::kill(store).await;
    let files = |dir: &Path| {
        let entries =
            fs::read_dir(dir.join("snapshot")).unwrap().chain(fs::read_dir(dir.join("journal")).unwrap());
        let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        all.push(dir.join("marker"));
        all.sort();
        all.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let before = files(dir.path());
    let file = aside.path().join("b");
    let survivor = Survivor::hold(dir.path()).unwrap();
    assert_eq!((survivor.cluster(), survivor.name()), ("c", "a"));
    let recovered = survivor.export(&file, true, Timestamp(5)).await.unwrap();
    assert_eq!((recovered.header.revision, recovered.unknown), (naive.state.revision(), 20));
    assert_eq!(recovered.header.digest, format!("{:032x}", naive.state.digest()));
    assert!(files(dir.path()) == before, "it was changed");
    assert!(survivor.export(&file, true, Timestamp(5)).await.is_err(), "it was written over");
    let left: Vec<_> = fs::read_dir(aside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["b"]);
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(Survivor::hold(elsewhere.path()).is_err());
}

#[tokio::test]
async fn a_backup_that_breaks_an_invariant_is_refused_by_its_name() {
    let (dir, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = start(dir.path()).await;
    run(&mut store, vec![network(0, BREAKING_TO_LOAD)]).await;
    let file = aside.path().join("b");
    backup(&store, true).write(fs::File::create(&file).unwrap()).unwrap();
    stop(store).await;
    let refused = restore(&file, &aside.path().join("data"), None, 9_000).unwrap_err();
    let RestoreError::Store(StoreError::Broken(broken)) = refused else { panic!("{refused}") };
    assert_eq!(broken.detail, BREAKING_TO_LOAD);
}

#[tokio::test]
async fn a_restored_state_that_breaks_an_invariant_ends_its_founder() {
    let (dir, other, aside) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = start(dir.path()).await;
    run(&mut store, vec![network(0, "sound")]).await;
    let file = aside.path().join("b");
    backup(&store, true).write(fs::File::create(&file).unwrap()).unwrap();
    stop(store).await;
    let restored = aside.path().join("data");
    restore(&file, &restored, None, 9_000).unwrap();
    // Another waiting state, which the restore would have refused, takes its place.
    let mut store = start(other.path()).await;
    run(&mut store, vec![network(0, BREAKING_TO_LOAD)]).await;
    store.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    fs::copy(other.path().join("snapshot/current"), restored.join("restored")).unwrap();
    let mut store = open(&restored).await.unwrap();
    let begun = store.machine.begin_restored(&restored, &founders()).await.unwrap_err();
    assert!(matches!(begun, StoreError::Broken(_)), "{begun}");
    let failed = store.failed.wait_for(Option::is_some).await.unwrap().clone();
    assert!(matches!(failed, Some(StoreFailure::Broken(_))), "{failed:?}");
}
