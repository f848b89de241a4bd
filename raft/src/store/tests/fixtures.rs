//! Data directories of earlier formats, read by this version. `UPDATE=1` writes a missing one; existing ones
//! never change. A version with another format adds a folder of its own, and still reads these.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use ipam_api::limits::JOURNAL_SEGMENT_AGE_MS_MAX;
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};
use openraft::{EntryPayload, RaftLogReader as _, RaftSnapshotBuilder as _};

use crate::store::tests::sample::{
    command, log_id, membership, read_all, run, start, stop, vote, write_behind,
};
use crate::store::{EventQuery, Identity, Quarantine, Store};
use crate::types::Entry;
use ipam_machine::State;
use ipam_machine::batch::{Batch, Leadership, Opened};
use ipam_machine::journal::EventId;

/// Formats: the first one had a value in sled for each row, whose directory is rebuilt.
const FORMATS: [(&str, u64); 2] = [("v1", 1), ("v2", 0)];

fn fixture(format: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fixtures").join(format).join(name)
}

/// A day passes at every tenth entry, so that the journal has sealed segments.
fn entry(index: u64) -> Entry {
    let log_time_ms = 1_000 + index + index / 10 * JOURNAL_SEGMENT_AGE_MS_MAX;
    let opened = Opened {
        leadership: Leadership::Number(0),
        log_time_ms,
        wall_ms: 1_700_000_000_000 + index,
        commands: vec![command(index)],
    };
    Entry { log_id: log_id(3, index), payload: EntryPayload::Normal(Batch::seal(&opened).unwrap()) }
}

/// Every kind of file in a directory: log, rows, snapshot, segments, marker, identity, quarantine flag.
async fn write_directory(dir: &Path) {
    let identity = Identity {
        version: 1,
        disk_id: "5a1e0f3c".to_owned(),
        name: "n1".to_owned(),
        cluster_id: Some("c0ffee".to_owned()),
        member_id: Some(1),
        founding: false,
    };
    identity.save(dir).unwrap();
    Quarantine::quarantined("to have one".to_owned()).save(dir).unwrap();
    let mut store = start(dir).await;
    store.log.save_vote(&vote(3, true)).await.unwrap();
    run(&mut store, vec![membership(3, 0)]).await;
    run(&mut store, (1..25).map(entry).collect()).await;
    let mut builder = store.machine.try_create_snapshot_builder(true).await.unwrap();
    builder.build_snapshot().await.unwrap();
    store.log.purge(log_id(3, 12)).await.unwrap();
    run(&mut store, (25..38).map(entry).collect()).await;
    write_behind(&store).await;
    stop(store).await;
}

/// Content of a directory, in words and in rows.
async fn print_directory(dir: &Path, rebuilt: u64) -> String {
    let mut text = String::new();
    writeln!(text, "{:?}", Identity::load(dir).unwrap()).unwrap();
    writeln!(text, "{:?}", Quarantine::load(dir).unwrap()).unwrap();
    let mut store = start(dir).await;
    assert_eq!(store.counters.rows_rebuilt.load(Relaxed), rebuilt);
    writeln!(text, "{:?}", store.log.read_vote().await.unwrap()).unwrap();
    for entry in read_all(&mut store.log).await {
        let what = match entry.payload {
            EntryPayload::Normal(batch) => format!("{:?}", batch.open().unwrap()),
            other => format!("{other:?}"),
        };
        writeln!(text, "entry {}: {what}", entry.log_id).unwrap();
    }
    let snapshot = store.machine.get_current_snapshot().await.unwrap().unwrap();
    writeln!(text, "snapshot {:?}", snapshot.meta).unwrap();
    print_state(&mut text, &store);
    let query = EventQuery { after: Some(EventId::default()), limit: 1_000, ..EventQuery::default() };
    for event in store.journal.page(&query).unwrap().events {
        writeln!(text, "event {event:?}").unwrap();
    }
    stop(store).await;
    text
}

fn print_state(text: &mut String, store: &Store) {
    let live = store.shared.live();
    let (applied, membership) = (live.applied, &live.membership);
    writeln!(text, "applied {applied:?}\n{membership:?}").unwrap();
    let state = store.shared.view();
    writeln!(text, "digest {:032x}", state.digest()).unwrap();
    for (key, row) in state.rows() {
        let row = row.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        writeln!(text, "row {}/{} {row}", key.table, key.id).unwrap();
    }
}

/// The files below a directory, by their path in it.
fn files(root: &Path, dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort_unstable();
    for path in entries {
        if path.is_dir() {
            files(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.push((name, fs::read(&path).unwrap()));
        }
    }
}

/// Packs the directory into one file: sled alone takes half a megabyte, most of it zeros.
fn pack(dir: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    files(dir, dir, &mut found);
    lz4_flex::compress_prepend_size(&postcard::to_stdvec(&found).unwrap())
}

fn unpack(packed: &[u8], dir: &Path) {
    let bytes = lz4_flex::decompress_size_prepended(packed).unwrap();
    for (name, content) in postcard::from_bytes::<Vec<(String, Vec<u8>)>>(&bytes).unwrap() {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

#[tokio::test]
async fn directories_of_all_formats_are_read_as_they_were_meant() {
    for (format, rebuilt) in FORMATS {
        let (packed, printed) = (fixture(format, "directory.lz4"), fixture(format, "directory.txt"));
        if std::env::var_os("UPDATE").is_some() && !packed.exists() {
            let dir = tempfile::tempdir().unwrap();
            write_directory(dir.path()).await;
            fs::create_dir_all(packed.parent().unwrap()).unwrap();
            fs::write(&packed, pack(dir.path())).unwrap();
            fs::write(&printed, print_directory(dir.path(), rebuilt).await).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        unpack(&fs::read(&packed).unwrap(), dir.path());
        let found = print_directory(dir.path(), rebuilt).await;
        let meant = fs::read_to_string(&printed).unwrap();
        for (found, meant) in found.lines().zip(meant.lines()) {
            assert_eq!(found, meant, "{format}");
        }
        assert_eq!(found.lines().count(), meant.lines().count(), "{format}");
    }
}

#[tokio::test]
async fn snapshot_and_log_make_the_same_state_as_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&fs::read(fixture("v2", "directory.lz4")).unwrap(), dir.path());
    let read = start(dir.path()).await;
    let digest = read.shared.with(State::digest);
    stop(read).await;
    fs::remove_dir_all(dir.path().join("rows")).unwrap();
    let rebuilt = start(dir.path()).await;
    assert_eq!(rebuilt.counters.rows_rebuilt.load(Relaxed), 1);
    assert_eq!(rebuilt.shared.with(State::digest), digest);
    stop(rebuilt).await;
}
