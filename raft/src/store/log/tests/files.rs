//! The log over several files, and the bytes in them.

use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};
use openraft::{EntryPayload, RaftLogReader as _, RaftSnapshotBuilder as _};

use crate::store::log::record::Record;
use crate::store::log::state::LogState;
use crate::store::tests::sample::{
    append, apply, kill, large_entry, log_id, membership, read_all, stop, submit, vote, write_behind,
};
use crate::store::{Store, StoreError, StoreFailure, log, open};
use crate::types::Entry;

fn files(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(log::path(dir)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "wal")).collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_log_of_several_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    let entries: Vec<Entry> = (0..40).map(|index| large_entry(1, index, 1 << 20)).collect();
    for entry in &entries {
        append(&mut store.log, vec![entry.clone()]).await;
    }
    assert!(files(dir.path()).len() >= 3);
    assert_eq!(read_all(&mut store.log).await, entries, "from memory and from closed files");
    let piece = store.log.limited_get_log_entries(0, 40).await.unwrap();
    assert!(!piece.is_empty() && piece.len() < 5, "{}", piece.len());
    write_behind(&store).await;
    kill(store).await;

    // Neither the first file nor one bit of it may be missing.
    let first = files(dir.path()).remove(0);
    let content = fs::read(&first).unwrap();
    fs::remove_file(&first).unwrap();
    assert!(matches!(open(dir.path()).await, Err(StoreError::Damaged { .. })));
    let mut altered = content.clone();
    altered[5 << 20] ^= 1;
    fs::write(&first, altered).unwrap();
    assert!(matches!(open(dir.path()).await, Err(StoreError::Damaged { .. })));
    fs::write(&first, content).unwrap();

    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(read_all(&mut store.log).await, entries);
    apply(&mut store, entries.clone()).await;
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    store.log.purge(log_id(1, 37)).await.unwrap();
    stop(store).await;
    assert_eq!(files(dir.path()).len(), 1, "what only purged entries are in is gone");
    let mut store = open(dir.path()).await.unwrap();
    assert_eq!(read_all(&mut store.log).await, entries[38..]);
    stop(store).await;
}

#[tokio::test]
async fn a_record_overwrites_zeros_and_leaves_the_length_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    let length = || fs::metadata(&files(dir.path())[0]).unwrap().len();
    let mut lengths = Vec::new();
    for index in 0..40 {
        append(&mut store.log, vec![large_entry(1, index, 10_000)]).await;
        lengths.push(length());
    }
    lengths.dedup();
    assert_eq!(lengths, [128 << 10, 256 << 10, 384 << 10, 512 << 10]);
    kill(store).await;
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, vec![large_entry(1, 40, 10_000)]).await;
    assert_eq!(length(), 512 << 10, "a start leaves room that is there");
    stop(store).await;
}

/// Writes a log of several files, and a snapshot of all of it.
async fn write_several_files(dir: &Path) -> Store {
    let mut store = open(dir).await.unwrap();
    let entries: Vec<Entry> = (0..40).map(|index| large_entry(1, index, 1 << 20)).collect();
    append(&mut store.log, entries.clone()).await;
    assert!(files(dir).len() >= 3);
    apply(&mut store, entries).await;
    store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    store
}

#[tokio::test]
async fn purged_files_are_removed_without_another_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = write_several_files(dir.path()).await;
    store.log.purge(log_id(1, 37)).await.unwrap();
    while files(dir.path()).len() > 1 {
        tokio::task::yield_now().await;
    }
    append(&mut store.log, vec![large_entry(1, 40, 1)]).await;
    stop(store).await;
}

#[tokio::test]
async fn a_purged_file_that_can_not_be_removed_ends_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = write_several_files(dir.path()).await;
    // The removal of the missing file will fail.
    fs::remove_file(files(dir.path()).remove(0)).unwrap();
    store.log.purge(log_id(1, 37)).await.unwrap();
    // Some entries may be written before the removal.
    for index in 40.. {
        let Ok(done) = submit(&mut store.log, vec![large_entry(1, index, 1)]).await else { break };
        if done.await.is_err() {
            break;
        }
    }
    let failed = store.failed.wait_for(Option::is_some).await.unwrap().clone();
    assert!(matches!(&failed, Some(StoreFailure::Disk(why)) if why.contains("os error 2")), "{failed:?}");
    assert!(store.log.save_vote(&vote(9, false)).await.is_err());
    kill(store).await;
}

#[tokio::test]
async fn membership_survives_in_log_rows_and_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).await.unwrap();
    append(&mut store.log, vec![membership(1, 0)]).await;
    apply(&mut store, vec![membership(1, 0)]).await;
    let expected = store.machine.applied_state().await.unwrap();
    assert_eq!(expected.1.log_id(), &Some(log_id(1, 0)));
    let built =
        store.machine.try_create_snapshot_builder(true).await.unwrap().build_snapshot().await.unwrap();
    assert_eq!(built.meta.last_membership, expected.1);
    stop(store).await;
    for without_rows in [false, true] {
        if without_rows {
            fs::remove_dir_all(dir.path().join("rows")).unwrap();
        }
        let mut store = open(dir.path()).await.unwrap();
        assert_eq!(store.machine.applied_state().await.unwrap(), expected);
        assert_eq!(read_all(&mut store.log).await, [membership(1, 0)]);
        kill(store).await;
    }
}

/// Existing disks have these bytes. A change here, or in a crate that affects them, needs a new version.
#[test]
fn golden_bytes() {
    let id = log_id(3, 258);
    let state = LogState { vote: Some(vote(3, true)), last: Some(id), committed: None, purged: Some(id) };
    for (record, golden) in [
        (Record::Vote(vote(3, true)), "00000000a20100000000000000030000000000000001"),
        (Record::Append(Entry { log_id: id, payload: EntryPayload::Blank }), BLANK),
        (Record::Append(Entry { log_id: id, payload: membership(1, 0).payload }), MEMBERSHIP),
        (Record::Append(Entry { log_id: id, payload: EntryPayload::Normal(batch()) }), NORMAL),
        (Record::Commit(id), "00000002a1000000000000000300000000000000010000000000000102"),
        (Record::TruncateAfter(None), "0000000300"),
        (Record::TruncateAfter(Some(id)), "0000000301a1000000000000000300000000000000010000000000000102"),
        (Record::PurgeUpto(id), "00000004a1000000000000000300000000000000010000000000000102"),
        (Record::Checkpoint(state), CHECKPOINT),
        (Record::Synced(258), "000000060000000000000102"),
    ] {
        let mut bytes = Vec::new();
        record.encode(&mut bytes).unwrap();
        let (content, sum) = bytes.split_at(bytes.len() - 8);
        assert_eq!(hex(content), golden);
        assert_eq!(sum, u64::from(crc32fast::hash(content)).to_be_bytes());
        let mut rest = bytes.as_slice();
        assert_eq!(Record::decode(&mut rest).unwrap(), record);
        assert!(rest.is_empty());
        for length in 0..bytes.len() {
            let error = Record::decode(&mut &bytes[..length]).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "cut at {length} of {record:?}");
        }
    }
}

const BLANK: &str =
    "00000001a1000000000000000300000000000000010000000000000102a30100000001642ddbc500d202ef8d";
const NORMAL: &str = "00000001a1000000000000000300000000000000010000000000000102\
    a301000000081df1636101060101000102000f90186d";
const MEMBERSHIP: &str = "00000001a1000000000000000300000000000000010000000000000102\
    a3010000005bef93632f0201010102010161046469736b0d31302e302e302e313a3734343114687474703a2f\
    2f31302e302e302e313a37343430020162046469736b0d31302e302e302e313a3734343114687474703a2f2f\
    31302e302e302e313a373434308738a46f";
const CHECKPOINT: &str = "000000050101a2010000000000000003000000000000000101\
    a1000000000000000300000000000000010000000000000102\
    0001a100000000000000030000000000000001000000000000010200";

fn batch() -> ipam_machine::batch::Batch {
    let opened = ipam_machine::batch::Opened {
        leadership: ipam_machine::batch::Leadership::Number(0),
        log_time_ms: 1,
        wall_ms: 2,
        commands: Vec::new(),
    };
    ipam_machine::batch::Batch::seal(&opened).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
