//! A truncated or altered log is refused, or opens with all that the marker covers and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::RaftLogStorage as _;

use crate::store::directory::Marker;
use crate::store::log::open::Opened;
use crate::store::log::wal::{WalLogId, WalPayload};
use crate::store::tests::sample::{append, entries, kill, vote, write_behind};
use crate::store::{StoreError, log, open};
use crate::types::Entry;

/// A log of 12 entries and two votes; the marker vouches for the first vote and 6 entries.
struct Fixture {
    dir: tempfile::TempDir,
    marker: Marker,
    file: PathBuf,
    content: Vec<u8>,
}

impl Fixture {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path()).await.unwrap();
        store.log.save_vote(&vote(1, true)).await.unwrap();
        append(&mut store.log, entries(1, 0..6)).await;
        write_behind(&store).await;
        let marker = Marker::read(dir.path()).unwrap().unwrap();
        append(&mut store.log, entries(1, 6..10)).await;
        store.log.save_vote(&vote(2, false)).await.unwrap();
        append(&mut store.log, entries(1, 10..12)).await;
        kill(store).await;
        let mut files = fs::read_dir(log::path(dir.path())).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension().is_some_and(|end| end == "wal")).unwrap();
        let content = fs::read(&file).unwrap();
        Self { dir, marker, file, content }
    }

    /// Opens the log with this content.
    fn open(&self, content: &[u8], same_boot: bool) -> Result<Vec<Entry>, StoreError> {
        let log = log::path(self.dir.path());
        fs::remove_dir_all(&log).unwrap();
        fs::create_dir(&log).unwrap();
        fs::write(&self.file, content).unwrap();
        let Opened { log, mark } = log::open(self.dir.path(), &self.marker, same_boot)?;
        assert!(mark.vote >= self.marker.log.vote, "an older vote was accepted");
        let read = log.read(0, u64::MAX).map(|item| {
            let (WalLogId(log_id), WalPayload(payload)) = item.unwrap();
            Entry { log_id, payload }
        });
        Ok(read.collect())
    }
}

/// The record with which raft-log begins a file is shorter than this.
const FIRST_RECORD_BYTES_MAX: usize = 64;

/// All that it opened with was written, and all that the marker vouches for is there.
fn assert_honest(opened: &[Entry], what: &str) {
    assert!(opened.len() >= 6, "{what}: opened with {} entries", opened.len());
    assert_eq!(opened, entries(1, 0..opened.len() as u64), "{what}");
}

fn assert_damaged(error: &StoreError, path: &Path) {
    assert!(matches!(error, StoreError::Damaged { path: found, .. } if found == path), "{error}");
}

#[tokio::test]
async fn a_tail_cut_at_any_byte() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.open(&fixture.content, true).unwrap(), entries(1, 0..12));
    let due = usize::try_from(fixture.marker.log.end).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for length in 0..fixture.content.len() {
        match fixture.open(&fixture.content[..length], true) {
            Ok(opened) => {
                assert!(length >= due, "opened although cut at {length} of {due}");
                assert_honest(&opened, &format!("cut at {length}"));
                seen.insert(opened.len());
            }
            Err(error) => {
                assert!(length < due, "refused a torn tail at {length}, {due} was due: {error}");
                assert_damaged(&error, &log::path(fixture.dir.path()));
                // Without its first record a file is incomplete, and is removed.
                if let Ok(left) = fs::read(&fixture.file)
                    && length > FIRST_RECORD_BYTES_MAX
                {
                    assert_eq!(left.len(), length, "what was refused was cut all the same");
                }
            }
        }
    }
    assert_eq!(seen, (6..12).collect(), "every number of entries came up");
}

#[tokio::test]
async fn a_bit_flipped_at_any_byte() {
    let fixture = Fixture::new().await;
    for offset in 0..fixture.content.len() {
        let mut content = fixture.content.clone();
        content[offset] ^= 1 << (offset % 8);
        let opened = fixture.open(&content, true);
        assert!(opened.is_err(), "a flip at {offset} went unseen: {} entries", opened.unwrap().len());
    }
}

#[tokio::test]
async fn after_a_power_cut_only_the_end_may_be_unreadable() {
    let fixture = Fixture::new().await;
    let due = usize::try_from(fixture.marker.log.end).unwrap();
    let (mut opened_with_less, mut refused) = (0, 0);
    for offset in (0..fixture.content.len()).rev().step_by(7) {
        let mut content = fixture.content.clone();
        content[offset] ^= 0x10;
        match fixture.open(&content, false) {
            Ok(opened) => {
                assert!(offset >= due);
                assert_honest(&opened, &format!("flip at {offset}"));
                opened_with_less += 1;
            }
            Err(_) => refused += 1,
        }
    }
    // The last record can't be told from a torn one; every other has a valid one after it.
    assert!(opened_with_less > 0 && opened_with_less < 40, "{opened_with_less}");
    assert!(refused > 0);
}

#[tokio::test]
async fn a_tail_of_zeros_is_torn_after_a_power_cut_only() {
    let fixture = Fixture::new().await;
    let mut content = fixture.content.clone();
    let length = content.len();
    content.extend([0; 4096]);
    assert_honest(&fixture.open(&content, false).unwrap(), "zeros behind the end");
    assert!(fixture.open(&content, true).is_err());
    content[length - 10..length].fill(0);
    assert_honest(&fixture.open(&content, false).unwrap(), "zeros from within the last record");
    let due = usize::try_from(fixture.marker.log.end).unwrap();
    content[due - 1..].fill(0);
    assert!(fixture.open(&content, false).is_err());
}

#[tokio::test]
async fn a_vote_that_went_back_is_damage() {
    let mut fixture = Fixture::new().await;
    for forgotten in [vote(2, true), vote(3, false)] {
        fixture.marker.log.vote = Some(forgotten);
        assert!(fixture.open(&fixture.content, true).is_err());
    }
    fixture.marker.log.vote = Some(vote(2, false));
    fixture.open(&fixture.content, true).unwrap();
}

#[tokio::test]
async fn a_missing_log_is_damage() {
    let fixture = Fixture::new().await;
    fs::remove_dir_all(log::path(fixture.dir.path())).unwrap();
    let error = open(fixture.dir.path()).await.err().unwrap();
    assert_damaged(&error, &log::path(fixture.dir.path()));
}

#[tokio::test]
async fn a_missing_or_altered_marker_is_damage() {
    let fixture = Fixture::new().await;
    let path = Marker::path(fixture.dir.path());
    let content = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert_damaged(&open(fixture.dir.path()).await.err().unwrap(), &path);
    for offset in 0..content.len() {
        let mut altered = content.clone();
        altered[offset] ^= 0x40;
        fs::write(&path, altered).unwrap();
        assert!(open(fixture.dir.path()).await.is_err(), "{offset}");
    }
}
