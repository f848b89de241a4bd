//! Rows: trusted unless something contradicts them, else rebuilt, and the state is the same each time.

use std::fs;
use std::path::Path;

use openraft::RaftSnapshotBuilder as _;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};

use super::block::{Block, IDS};
use super::database::{self, Point, Rows};
use crate::progress::Progress;
use crate::store::directory::Marker;
use crate::store::open;
use crate::store::tests::sample::{apply, entries, kill, log_id, run, start, stop, write_behind};
use crate::types::LogId;
use ipam_machine::{RowKey, State};

/// 300 entries applied, rows written, then killed; returns the digest.
async fn fixture(dir: &Path) -> u128 {
    let mut store = open(dir).await.unwrap();
    run(&mut store, entries(1, 0..200)).await;
    write_behind(&store).await;
    run(&mut store, entries(1, 200..300)).await;
    write_behind(&store).await;
    let digest = store.shared.with(State::digest);
    kill(store).await;
    digest
}

/// Starts; returns the position of the trusted rows and the digest.
async fn restart(dir: &Path) -> (Option<LogId>, u128) {
    let store = open(dir).await.unwrap();
    let trusted = store.shared.applied();
    kill(store).await;
    let store = start(dir).await;
    assert_eq!(store.shared.applied(), Some(log_id(1, 299)));
    let digest = store.shared.with(State::digest);
    kill(store).await;
    (trusted, digest)
}

fn put_aside(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("rows.damaged")).collect()
}

#[tokio::test]
async fn rows_are_trusted_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let digest = fixture(dir.path()).await;
    assert_eq!(restart(dir.path()).await, (Some(log_id(1, 299)), digest));
    assert!(put_aside(dir.path()).is_empty());
}

#[tokio::test]
async fn rows_are_trusted_after_another_boot_only_if_closed() {
    for clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let digest = fixture(dir.path()).await;
        if clean {
            stop(start(dir.path()).await).await;
        }
        let marker = Marker::read(dir.path()).unwrap().unwrap();
        assert_eq!(marker.clean, clean);
        Marker { boot_id: "another".to_owned(), ..marker }.write(dir.path()).unwrap();
        let trusted = clean.then(|| log_id(1, 299));
        assert_eq!(restart(dir.path()).await, (trusted, digest));
        assert_eq!(put_aside(dir.path()).is_empty(), clean);
    }
}

#[tokio::test]
async fn damaged_rows_are_put_aside_and_rebuilt() {
    let pristine = tempfile::tempdir().unwrap();
    let digest = fixture(pristine.path()).await;
    let db = database::path(pristine.path()).join("db");
    let content = fs::read(&db).unwrap();
    let used = content.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut rebuilt = 0;
    for step in 0..24 {
        let mut content = content.clone();
        if step % 3 == 0 {
            content.truncate(used * step / 24);
        } else {
            content[used * step / 24] ^= 0x20;
        }
        let dir = tempfile::tempdir().unwrap();
        copy(pristine.path(), dir.path());
        fs::write(database::path(dir.path()).join("db"), content).unwrap();
        assert_eq!(restart(dir.path()).await.1, digest, "step {step}");
        rebuilt += put_aside(dir.path()).len();
    }
    assert!(rebuilt > 0);
}

#[test]
fn rows_of_another_state_are_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let state = State::default();
    let point = Point { digest: state.digest(), ..Point::default() };
    drop(Rows::create(dir.path(), &state, &point).unwrap());
    let read = || {
        let (rows, point) = Rows::open_at(dir.path()).unwrap();
        rows.read(&point, &Progress::default()).map(|state| (state.digest(), point))
    };
    assert_eq!(read(), Ok((state.digest(), point.clone())));
    let point = Point { digest: point.digest.wrapping_add(1), ..point };
    drop(Rows::create(dir.path(), &state, &point).unwrap());
    assert!(read().unwrap_err().contains("digest"));
}

#[test]
fn rows_whose_writing_was_broken_off_are_as_before_or_not_trusted() {
    for (broken_off_at, trusted) in [(100, true), (130, false), (1000, false)] {
        let dir = tempfile::tempdir().unwrap();
        let state = State::default();
        let before = Point { digest: state.digest(), ..Point::default() };
        let rows = Rows::create(dir.path(), &state, &before).unwrap();
        let blocks = (0..2000).map(|number| {
            assert_ne!(number, broken_off_at, "broken off");
            block(200, number, b"row")
        });
        let after = Point { applied: Some(log_id(1, 7)), ..before.clone() };
        assert!(rows.write(blocks, &after).unwrap_err().contains("broken off"));
        drop(rows);
        match Rows::open_at(dir.path()) {
            Ok((rows, point)) => {
                assert_eq!((trusted, &point), (true, &before));
                assert_eq!(rows.read(&point, &Progress::default()).unwrap().digest(), before.digest);
            }
            Err(why) => assert!(!trusted && why.contains("broken off"), "{why}"),
        }
    }
}

#[tokio::test]
async fn a_near_snapshot_is_begun_with_and_the_rows_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..250)).await;
    store.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    run(&mut store, entries(1, 250..300)).await;
    write_behind(&store).await;
    let digest = store.shared.with(State::digest);
    kill(store).await;
    let rows_at = || Rows::open_at(dir.path()).unwrap().1.applied;
    // Meanwhile nothing is written to the rows, and no change is lost.
    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(store.shared.applied(), Some(log_id(1, 249)));
    apply(&mut store, entries(1, 250..280)).await;
    write_behind(&store).await;
    kill(store).await;
    assert_eq!(rows_at(), Some(log_id(1, 299)));
    assert_eq!(restart(dir.path()).await, (Some(log_id(1, 249)), digest));
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 300..310)).await;
    write_behind(&store).await;
    let digest = store.shared.with(State::digest);
    kill(store).await;
    assert_eq!(rows_at(), Some(log_id(1, 309)));
    // The rows are complete: without the snapshot they are the only source.
    fs::remove_dir_all(dir.path().join("snapshot")).unwrap();
    let store = open(dir.path()).await.unwrap();
    assert_eq!(store.shared.applied(), Some(log_id(1, 309)));
    assert_eq!(store.shared.with(State::digest), digest);
    assert!(put_aside(dir.path()).is_empty());
    kill(store).await;
}

#[tokio::test]
async fn a_large_state_is_left_in_a_snapshot_and_a_small_one_is_not() {
    for (large_allocations, left) in [(0, true), (50_000, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path()).await.unwrap();
        run(&mut store, entries(1, 0..300)).await;
        store.closer.large_allocations = large_allocations;
        stop(store).await;
        assert_eq!(dir.path().join("snapshot/current").exists(), left);
        let store = open(dir.path()).await.unwrap();
        assert_eq!(store.shared.applied(), Some(log_id(1, 299)));
        kill(store).await;
    }
}

#[tokio::test]
async fn rows_of_an_earlier_day_are_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..200)).await;
    stop(store).await;
    let old = tempfile::tempdir().unwrap();
    copy(&database::path(dir.path()), old.path());
    let mut store = start(dir.path()).await;
    run(&mut store, entries(1, 200..300)).await;
    write_behind(&store).await;
    let digest = store.shared.with(State::digest);
    kill(store).await;
    fs::remove_dir_all(database::path(dir.path())).unwrap();
    copy(old.path(), &database::path(dir.path()));
    assert_eq!(restart(dir.path()).await, (None, digest));
    assert_eq!(put_aside(dir.path()), ["rows.damaged-1"]);
}

#[tokio::test]
async fn rows_never_get_ahead_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..5)).await;
    // The entries are committed by the other members, but never reach this disk.
    apply(&mut store, entries(1, 5..9)).await;
    stop(store).await;
    assert!(Marker::read(dir.path()).unwrap().unwrap().rows_applied <= Some(log_id(1, 4)));
    let store = start(dir.path()).await;
    assert_eq!(store.shared.applied(), Some(log_id(1, 4)));
    stop(store).await;
}

#[tokio::test]
async fn only_the_newest_doubtful_rows_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for expected in ["rows.damaged-1", "rows.damaged-2"] {
        fs::create_dir(database::path(dir.path())).unwrap();
        database::put_aside(dir.path()).unwrap();
        assert_eq!(put_aside(dir.path()), [expected]);
    }
}

#[tokio::test]
async fn a_purged_log_and_lost_rows_begin_with_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    run(&mut store, entries(1, 0..250)).await;
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    store.log.purge(log_id(1, 249)).await.unwrap();
    run(&mut store, entries(1, 250..300)).await;
    write_behind(&store).await;
    let digest = store.shared.with(State::digest);
    kill(store).await;
    fs::remove_dir_all(database::path(dir.path())).unwrap();
    assert_eq!(restart(dir.path()).await, (Some(log_id(1, 249)), digest));

    fs::remove_dir_all(dir.path().join("snapshot")).unwrap();
    fs::remove_dir_all(database::path(dir.path())).unwrap();
    let error = open(dir.path()).await.err().unwrap().to_string();
    assert!(error.contains("no snapshot has them"), "{error}");
}

/// A block with all rows of its ids.
fn block(table: u8, number: u64, row: &[u8]) -> Block {
    let key = |offset| RowKey { table, id: number * IDS + offset };
    Block { key: key(0), rows: (0..IDS).map(|offset| (key(offset), row.to_vec())).collect() }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the resident memory of this process, in MiB.
fn resident_mib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() >> 10
}

/// Memory stays bounded while many rows are written. With 1,024 rows a batch it grew by 800 bytes a row
/// without end, because of the way in which sled frees replaced pages.
#[test]
fn writing_many_rows_at_once_doesnt_take_memory_for_each() {
    const WARM: u64 = 20_000;
    const MORE: u64 = 60_000;
    let dir = tempfile::tempdir().unwrap();
    let point = Point::default();
    let rows = Rows::create(dir.path(), &State::default(), &point).unwrap();
    let block = |number| block(8, number, &[7; 100]);
    rows.write((0..WARM).map(block), &point).unwrap();
    let before = resident_mib();
    rows.write((WARM..WARM + MORE).map(block), &point).unwrap();
    let grown = resident_mib().saturating_sub(before);
    // The loss would be 137 MiB; on a busy machine sled frees late, and 57 were seen.
    assert!(grown < 96, "{MORE} rows more took {grown} MiB more");
}
