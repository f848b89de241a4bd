//! Verification of a stopped member's journal, every byte of it, without changes.
//!
//! The journal is compared with itself: checksums, and chains within segments and between them. The member
//! also compares it with its state at the start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::files::open_chunks;
use super::sealed::Sealed;
use crate::store::directory::{StoreError, lock_dir};
use ipam_machine::EventId;
use ipam_machine::journal::{Chain, Segment};

/// The findings in a journal.
#[derive(Debug, Default)]
pub struct JournalReport {
    /// Sealed segments that are whole.
    pub sealed: u64,
    pub sealed_events: u64,
    /// Frames in the open segment.
    pub open_frames: u64,
    /// The oldest and the newest event of sealed segments that are whole.
    pub span: Option<(EventId, EventId)>,
    /// True if the open segment's file ends within a frame, as it may after a crash; the log replaces the
    /// rest.
    pub torn: bool,
    /// Damage, file by file.
    pub damaged: Vec<DamagedFile>,
}

/// A file that is damaged or missing.
#[derive(Debug)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// The sign of the damage.
    pub what: String,
}

/// The files of a journal by the numbers of their segments.
#[derive(Default)]
struct Found {
    sealed: BTreeMap<u64, PathBuf>,
    open: BTreeMap<u64, PathBuf>,
}

/// Checks the journal in the data directory of a stopped member.
///
/// # Errors
/// If the journal is missing or can't be read, or the member runs.
pub fn check_journal(data_dir: &Path) -> Result<JournalReport, StoreError> {
    let dir = data_dir.join("journal");
    // The journal is searched before the lock is created, since the directory must belong to a member.
    let found = find(&dir).map_err(StoreError::io(&dir))?;
    let _alone = lock_dir(data_dir)?;
    let mut report = JournalReport::default();
    let sealed = check_sealed(&found, &mut report);
    for (number, path) in &found.open {
        check_open(*number, path, &sealed, &mut report);
    }
    Ok(report)
}

fn find(dir: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = |prefix: &str| name.strip_prefix(prefix).and_then(|number| number.parse().ok());
        if let Some(number) = number("segment-") {
            found.sealed.insert(number, path);
        } else if let Some(number) = number("open-") {
            found.open.insert(number, path);
        }
    }
    Ok(found)
}

/// Checks each sealed segment and that it follows its predecessor; returns the intact ones.
fn check_sealed(found: &Found, report: &mut JournalReport) -> BTreeMap<u64, Segment> {
    let mut whole = BTreeMap::new();
    for (number, path) in &found.sealed {
        match read_sealed(*number, path) {
            Ok(segment) => drop(whole.insert(*number, segment)),
            Err(error) => report.damaged(path, error.to_string()),
        }
    }
    let numbers: Vec<u64> = found.sealed.keys().copied().collect();
    for (before, next) in numbers.iter().zip(numbers.iter().skip(1)) {
        for missing in *before + 1..*next {
            let path =
                found.sealed.get(next).map(|path| path.with_file_name(format!("segment-{missing:010}")));
            report.damaged(&path.unwrap_or_default(), "it is missing".to_owned());
        }
        let (Some(one), Some(other)) = (whole.get(before), whole.get(next)) else { continue };
        if *before + 1 == *next
            && (other.before != one.chain || other.first <= one.last)
            && let Some(path) = found.sealed.get(next)
        {
            report.damaged(path, "it doesn't follow the segment before it".to_owned());
        }
    }
    if let Some(first) = whole.get(&1)
        && first.before != Chain::default()
        && let Some(path) = found.sealed.get(&1)
    {
        report.damaged(path, "it doesn't begin where history began".to_owned());
    }
    report.sealed = whole.len() as u64;
    report.sealed_events = whole.values().map(|segment| segment.events).sum();
    let ends = whole.values().next().zip(whole.values().next_back());
    report.span = ends.map(|(oldest, newest)| (oldest.first, newest.last));
    whole
}

fn read_sealed(number: u64, path: &Path) -> io::Result<Segment> {
    let sealed = Sealed::open_any(path)?;
    sealed.verify()?;
    sealed.segment(number).cloned()
}

/// Checks an open segment's file: its frames, and that their chain follows the preceding segment.
fn check_open(number: u64, path: &Path, sealed: &BTreeMap<u64, Segment>, report: &mut JournalReport) {
    let previous = number.checked_sub(1).and_then(|previous| sealed.get(&previous));
    let same = sealed.get(&number);
    let before = previous.map(|segment| segment.chain).or(same.map(|segment| segment.before));
    let behind = previous.map(|segment| segment.last);
    let chunks = fs::read(path).and_then(|content| open_chunks(&content, before.unwrap_or_default(), behind));
    match chunks {
        Ok(chunks) => {
            report.open_frames = chunks.frames;
            report.torn |= chunks.torn;
            // The segment was sealed while this file remained: its contents are a prefix of the sealed
            // segment.
            let same = same.filter(|same| chunks.frames == same.frames && chunks.chain != same.chain);
            if same.is_some() {
                report.damaged(path, "it isn't what was sealed of it".to_owned());
            }
        }
        Err(error) => report.damaged(path, error.to_string()),
    }
}

impl JournalReport {
    fn damaged(&mut self, path: &Path, what: String) {
        self.damaged.push(DamagedFile { path: path.to_owned(), what });
    }
}
