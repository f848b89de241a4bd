//! Ends of processes, and complaints in their logs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Instant;

use super::cluster::Lab;
use crate::checker::Exit;

/// Parts of lines, in lower case, by which a process reports a defect of its own.
const COMPLAINTS: [&str; 4] = ["panicked", "invariant broken", "diverged", "stack overflow"];
/// Status of a member that ended because of its disk.
const FAILED_DISK: &str = "exit status: 3";
/// Parts of the lines about the store of rows. The store panics if a disk fails; the member then ends with
/// [`FAILED_DISK`].
const ROWS: [&str; 2] = ["thread 'ipamd-rows'", "the thread of the rows has panicked"];
/// Maximum number of complaints of one process.
const COMPLAINTS_MAX: usize = 20;
/// Longest complaint.
const COMPLAINT_CHARS_MAX: usize = 400;
/// Status of a process that reports a complaint and still runs.
const RUNS: &str = "runs";

/// End of a member's process.
#[derive(Debug)]
pub(super) struct Ended {
    at: Instant,
    pub(super) process: String,
    status: String,
    pub(super) is_expected: bool,
}

impl Lab {
    /// Notes the end of a process.
    pub(super) fn note_end(&mut self, process: &str, status: ExitStatus, is_expected: bool) {
        let (process, status) = (process.to_owned(), status.to_string());
        self.ends.push(Ended { at: Instant::now(), process, status, is_expected });
    }

    /// Returns the ends of members' processes since the last call, and processes that complain and run.
    ///
    /// `now_ns` is the present time in nanoseconds since the run began.
    pub fn exits(&mut self, now_ns: u64) -> Vec<Exit> {
        let ends = std::mem::take(&mut self.ends);
        let mut exits: Vec<Exit> = ends
            .into_iter()
            .map(|end| Exit {
                time_ns: now_ns
                    .saturating_sub(u64::try_from(end.at.elapsed().as_nanos()).unwrap_or_default()),
                process: end.process,
                status: end.status,
                is_expected: end.is_expected,
                complaints: Vec::new(),
            })
            .collect();
        let logs: Vec<_> =
            self.members.iter().map(|member| (member.name.clone(), member.log.clone())).collect();
        for (name, log) in logs {
            let from = self.searched.entry(name.clone()).or_default();
            let mut complaints = search(&log, from);
            let failed_disk =
                |exit: &Exit| exit.process == name && exit.is_expected && exit.status == FAILED_DISK;
            if exits.iter().any(failed_disk) {
                complaints.retain(|line| !ROWS.iter().any(|part| line.contains(part)));
            }
            if complaints.is_empty() {
                continue;
            }
            match exits.iter_mut().rev().find(|exit| exit.process == name) {
                Some(exit) => exit.complaints = complaints,
                None => exits.push(Exit {
                    time_ns: now_ns,
                    process: name,
                    status: RUNS.to_owned(),
                    is_expected: false,
                    complaints,
                }),
            }
        }
        exits
    }
}

/// Returns the complaints in complete lines of a log behind a position, and moves the position to their end.
fn search(log: &Path, from: &mut u64) -> Vec<String> {
    let mut bytes = Vec::new();
    let opened = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(*from))?;
        file.read_to_end(&mut bytes)
    });
    // A member that was never started has no log.
    if opened.is_err() {
        return Vec::new();
    }
    // The member may be writing its last line.
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    *from += u64::try_from(bytes.len()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.to_lowercase().contains(complaint));
    let lines = text.lines().filter(complains).take(COMPLAINTS_MAX);
    lines.map(|line| line.chars().take(COMPLAINT_CHARS_MAX).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_found_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("n1.log");
        let mut from = 0;
        assert!(search(&log, &mut from).is_empty());
        std::fs::write(&log, "fine\nthread 'a' panicked at b.rs:1\n").unwrap();
        assert_eq!(search(&log, &mut from), ["thread 'a' panicked at b.rs:1"]);
        assert!(search(&log, &mut from).is_empty());
        std::fs::write(&log, "fine\nthread 'a' panicked at b.rs:1\nINVARIANT BROKEN: x\n").unwrap();
        assert_eq!(search(&log, &mut from), ["INVARIANT BROKEN: x"]);
        let begun = "fine\nthread 'a' panicked at b.rs:1\nINVARIANT BROKEN: x\nthread 'c' panicked";
        std::fs::write(&log, begun).unwrap();
        assert!(search(&log, &mut from).is_empty());
        std::fs::write(&log, format!("{begun} at d.rs:2\n")).unwrap();
        assert_eq!(search(&log, &mut from), ["thread 'c' panicked at d.rs:2"]);
    }
}
