//! Ends of processes, and complaints in their logs.

use std::process::ExitStatus;
use std::time::Instant;

use super::cluster::Lab;
use crate::checker::Exit;
use crate::live::log;

/// Status of a member that ended because of its disk.
const FAILED_DISK: &str = "exit status: 3";
/// Parts of the lines about the store of rows. The store panics if a disk fails; the member then ends with
/// [`FAILED_DISK`].
const ROWS: [&str; 2] = ["thread 'ipamd-rows'", "the thread of the rows has panicked"];

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
            let mut complaints = log::complaints(&log, from);
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
                    status: Exit::RUNS.to_owned(),
                    is_expected: false,
                    complaints,
                }),
            }
        }
        exits
    }
}
