//! The log over several files, and the bytes in them.

use std::fs;
use std::path::{Path, PathBuf};

use codeq::{Decode as _, Encode as _};
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};
use openraft::{EntryPayload, RaftLogReader as _, RaftSnapshotBuilder as _};

use crate::store::log::wal::{WalLogId, WalPayload, WalVote};
use crate::store::tests::sample::{
    append, apply, kill, large_entry, log_id, membership, read_all, stop, vote, write_behind,
};
use crate::store::{StoreError, log, open};
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
    let mut bytes = Vec::new();
    WalLogId(log_id(3, 258)).encode(&mut bytes).unwrap();
    assert_eq!(hex(&bytes), "a1000000000000000300000000000000010000000000000102");
    assert_eq!(WalLogId::decode(bytes.as_slice()).unwrap(), WalLogId(log_id(3, 258)));

    bytes.clear();
    WalVote(vote(3, true)).encode(&mut bytes).unwrap();
    assert_eq!(hex(&bytes), "a20100000000000000030000000000000001");
    assert_eq!(WalVote::decode(bytes.as_slice()).unwrap(), WalVote(vote(3, true)));

    for (payload, golden) in [
        (EntryPayload::Blank, BLANK),
        (membership(1, 0).payload, MEMBERSHIP),
        (EntryPayload::Normal(batch()), NORMAL),
    ] {
        bytes.clear();
        WalPayload(payload.clone()).encode(&mut bytes).unwrap();
        assert_eq!(hex(&bytes), golden);
        assert_eq!(WalPayload::decode(bytes.as_slice()).unwrap().0, payload);
    }
}

const BLANK: &str = "a30100000001642ddbc500d202ef8d";
const NORMAL: &str = "a301000000081df1636101060101000102000f90186d";
const MEMBERSHIP: &str = "a3010000005bef93632f0201010102010161046469736b0d31302e302e302e313a3734343114687474703a2f\
    2f31302e302e302e313a37343430020162046469736b0d31302e302e302e313a3734343114687474703a2f2f\
    31302e302e302e313a373434308738a46f";

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
