//! A truncated or altered log is refused, or opens with all that the marker covers and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::RaftLogStorage as _;

use crate::store::directory::Marker;
use crate::store::log::open::Opened;
use crate::store::log::record::Record;
use crate::store::tests::sample::{append, entries, entry_with, kill, large_entry, vote, write_behind};
use crate::store::{StoreError, log, open};
use crate::types::Entry;

/// A log of 12 entries and two votes; the marker vouches for the first vote and 6 entries.
struct Fixture {
    dir: tempfile::TempDir,
    marker: Marker,
    file: PathBuf,
    /// The file without the zeros at its end.
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
        let content = records(&file);
        Self { dir, marker, file, content }
    }

    /// Opens the log with this content.
    fn open(&self, content: &[u8], same_boot: bool) -> Result<Vec<Entry>, StoreError> {
        let log = log::path(self.dir.path());
        fs::remove_dir_all(&log).unwrap();
        fs::create_dir(&log).unwrap();
        fs::write(&self.file, content).unwrap();
        let Opened { files, mark } = log::open(self.dir.path(), &self.marker, same_boot)?;
        assert!(mark.vote >= self.marker.log.vote, "an older vote was accepted");
        Ok(files.read(0..u64::MAX, usize::MAX).unwrap())
    }
}

/// Content of a file up to the end of its last record.
fn records(file: &Path) -> Vec<u8> {
    let content = fs::read(file).unwrap();
    let mut rest = content.as_slice();
    let mut behind = rest;
    while Record::decode(&mut behind).is_ok() {
        rest = behind;
    }
    assert!(!rest.is_empty() && rest.iter().all(|byte| *byte == 0), "it ends with zeros");
    content[..content.len() - rest.len()].to_vec()
}

/// The record with which a file begins is shorter than this.
const FIRST_RECORD_BYTES_MAX: usize = 64;

/// Checks that the log contains only written entries, and all entries that the marker vouches for.
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
                // A file without its first record is incomplete, and is removed.
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
async fn after_a_power_cut_only_the_last_write_may_be_unreadable() {
    let fixture = Fixture::new().await;
    let (mut opened_with_less, mut refused) = (0, 0);
    for offset in (0..fixture.content.len()).rev() {
        let mut content = fixture.content.clone();
        content[offset] ^= 0x10;
        match fixture.open(&content, false) {
            Ok(opened) => {
                assert_eq!(refused, 0, "flip at {offset}: a later write shows that it was on disk");
                assert!(opened.len() == 10 || opened.len() == 11, "flip at {offset}: {}", opened.len());
                assert_honest(&opened, &format!("flip at {offset}"));
                opened_with_less += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(opened_with_less > 0 && refused > 0);
}

#[tokio::test]
async fn zeros_are_room_and_a_record_that_ends_in_them_is_torn_after_a_power_cut_only() {
    let fixture = Fixture::new().await;
    let mut content = fixture.content.clone();
    let length = content.len();
    content.extend([0; 8192]);
    for same_boot in [false, true] {
        assert_eq!(fixture.open(&content, same_boot).unwrap(), entries(1, 0..12), "zeros behind the end");
    }
    content[length - 10..length].fill(0);
    assert_honest(&fixture.open(&content, false).unwrap(), "zeros from within the last record");
    assert!(fixture.open(&content, true).is_err(), "no process leaves half a page");
    let due = usize::try_from(fixture.marker.log.end).unwrap();
    content[due - 1..].fill(0);
    assert!(fixture.open(&content, false).is_err());
}

#[tokio::test]
async fn an_unfinished_write_of_several_pages_is_cut_off() {
    let fixture = Fixture::new().await;
    let before = fixture.content.len();
    let mut content = fixture.content.clone();
    Record::Synced(before as u64).encode(&mut content).unwrap();
    let begin = content.len();
    for index in 12..15 {
        Record::Append(large_entry(1, index, 5000)).encode(&mut content).unwrap();
    }
    let end = content.len();
    content.resize(end.next_multiple_of(4096) + 4096, 0);
    assert_eq!(fixture.open(&content, true).unwrap().len(), 15);
    for page in (begin.next_multiple_of(4096)..end).step_by(4096) {
        // The process was killed.
        let mut torn = content.clone();
        torn[page..].fill(0);
        let opened = fixture.open(&torn, true).unwrap();
        assert!((12..15).contains(&opened.len()), "cut at {page}: {}", opened.len());
        assert_eq!(fixture.open(&torn[..page], true).unwrap(), opened);
        // The machine lost power, and the disk already had some of the other pages.
        let mut torn = content.clone();
        torn[page..end.min(page + 4096)].fill(0);
        assert_eq!(fixture.open(&torn, false).unwrap(), opened, "without page {page}");
        assert!(fs::read(&fixture.file).unwrap().len() <= page, "it is gone for good");
        assert_eq!(fixture.open(&torn, true).is_ok(), page + 4096 >= end, "no process leaves a gap");
        // A later write shows that this one was complete.
        Record::Synced(torn.len() as u64).encode(&mut torn).unwrap();
        fixture.open(&torn, false).unwrap_err();
    }
}

#[tokio::test]
async fn a_client_can_not_write_the_sign_of_a_later_write() {
    let fixture = Fixture::new().await;
    let before = fixture.content.len();
    // A text of a request with the bytes of such a record, as UTF-8.
    let forged = (1_u64 << 20..).find_map(|position| {
        let mut bytes = Vec::new();
        Record::Synced(position).encode(&mut bytes).unwrap();
        bytes.is_ascii().then(|| String::from_utf8(bytes).unwrap())
    });
    let mut content = fixture.content.clone();
    Record::Append(large_entry(1, 12, 5000)).encode(&mut content).unwrap();
    Record::Append(entry_with(1, 13, &forged.unwrap())).encode(&mut content).unwrap();
    assert_eq!(fixture.open(&content, false).unwrap().len(), 14);
    content[before + 60] ^= 1;
    assert_eq!(fixture.open(&content, false).unwrap().len(), 12, "torn, and not damaged");
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
