//! I13: no process panics, breaks an invariant or ends without a fault that explains it.

use super::intervals::{FaultInterval, faults};
use super::{Checker, Exit, Record, Verdict};
use crate::nemesis::{Corruption, Kind, Moment};

/// Checker of I13.
#[derive(Debug)]
pub(super) struct Exits;

/// Longest time between the end of a process and a fault that is shown with it.
const NEAR_NS: u64 = 5_000_000_000;

/// Status of a process that has ended by itself.
const EXIT_STATUS: &str = "exit status";
/// Parts of lines about damaged rows: sled panics, and the member builds its rows again.
const ROWS: [&str; 2] = ["/sled-0.34", "the row store panicked"];

impl Checker for Exits {
    fn id(&self) -> &'static str {
        "I13"
    }

    fn name(&self) -> &'static str {
        "clean processes"
    }

    fn promises(&self) -> &'static [u8] {
        &[2, 11]
    }

    fn about(&self) -> &'static str {
        "No process panics or breaks an invariant, and a fault explains each end of a process."
    }

    fn check(&self, record: &Record) -> Verdict {
        let mut verdict = Verdict::default();
        let faults = faults(&record.history);
        let mut complaints = 0_u64;
        for exit in &record.exits {
            verdict.checked += 1;
            // Faults shortly before or after the end are shown, since they are the probable cause.
            let near: Vec<u64> = faults
                .iter()
                .filter(|fault| {
                    fault.begin_ns() <= exit.time_ns && exit.time_ns <= fault.end_ns().saturating_add(NEAR_NS)
                })
                .map(|fault| fault.inject.index)
                .collect();
            let time_s = seconds(exit.time_ns);
            if !exit.is_expected && !faults.iter().any(|fault| ends_by(fault, exit)) {
                let message =
                    format!("{} ended with {} after {time_s} without a cause", exit.process, exit.status);
                verdict.violated(message, near.iter().copied());
            }
            for complaint in unexplained(&faults, exit) {
                complaints += 1;
                let message = format!("log of {} until {time_s}: {complaint}", exit.process);
                verdict.violated(message, near.iter().copied());
            }
        }
        verdict.figure("ends of processes", record.exits.len());
        verdict.figure("complaints in logs", complaints);
        verdict
    }
}

/// Number of panics that no fault explains.
pub(crate) fn panics(record: &Record) -> u64 {
    let faults = faults(&record.history);
    let complaints = record.exits.iter().flat_map(|exit| unexplained(&faults, exit));
    complaints.filter(|complaint| complaint.contains("panicked")).count() as u64
}

/// Complaints in a log that no fault explains.
fn unexplained<'a>(faults: &[FaultInterval<'_>], exit: &'a Exit) -> impl Iterator<Item = &'a String> {
    let has_damage = faults.iter().any(|fault| is_damaged_by(fault, exit));
    let is_open = move |line: &&String| !has_damage || !ROWS.iter().any(|part| line.contains(part));
    exit.complaints.iter().filter(is_open)
}

/// Returns true for a member that ended while it started with its disk cut off, during the injection. Later
/// the disk is back, and a member that can't start has lost data.
fn ends_by(fault: &FaultInterval<'_>, exit: &Exit) -> bool {
    let Kind::Power { members, moment: Moment::Starting, .. } = &fault.fault.kind else { return false };
    let is_during = fault.begin_ns() <= exit.time_ns
        && fault.injected.is_some_and(|injected| exit.time_ns <= injected.time_ns);
    members.contains(&exit.process) && is_during && exit.status.starts_with(EXIT_STATUS)
}

/// Returns true for a member whose rows were damaged before the end.
fn is_damaged_by(fault: &FaultInterval<'_>, exit: &Exit) -> bool {
    let Kind::Corrupt { members, corruption: Corruption::RowsFlip } = &fault.fault.kind else { return false };
    members.contains(&exit.process) && fault.begin_ns() <= exit.time_ns
}

fn seconds(time_ns: u64) -> String {
    format!("{}.{:03} s", time_ns / 1_000_000_000, time_ns / 1_000_000 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::Script;
    use crate::nemesis::Cut;

    fn exit(is_expected: bool, complaints: &[&str]) -> Exit {
        Exit {
            time_ns: 1_500_000_000,
            process: "n1".to_owned(),
            status: "signal 9".to_owned(),
            is_expected,
            complaints: complaints.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    #[test]
    fn explained_ends_are_clean() {
        let verdict = Exits.check(&Record { exits: vec![exit(true, &[])], ..Record::default() });
        assert_eq!((verdict.violations, verdict.checked), (0, 1));
    }

    #[test]
    fn panics_and_unexplained_ends_are_violations_with_the_faults_around_them() {
        let mut script = Script::default();
        script.at(1000).inject("kill", 1000, Kind::Kill { members: vec!["n1".to_owned()] }, None, &["9"]);
        let history = script.history();
        let exits = vec![exit(false, &[]), exit(true, &["panicked at src/lib.rs:1"])];
        let verdict = Exits.check(&Record { history, exits, ..Record::default() });
        assert_eq!(verdict.violations, 2);
        assert_eq!(verdict.anomalies[0].operations, [0]);
        assert!(verdict.anomalies[1].message.contains("panicked"));
    }

    #[test]
    fn a_disk_without_power_explains_the_end_of_its_own_member_alone() {
        let mut script = Script::default();
        let (cut, moment) = (Cut::Flushed, Moment::Starting);
        let kind = Kind::Power { members: vec!["n1".to_owned()], cut, moment };
        script.at(1000).inject("power", 1000, kind, None, &["disks without power: n1"]);
        let history = script.history();
        let time_ns = 1_000_000_000;
        let ended = Exit { status: "exit status: 1".to_owned(), time_ns, ..exit(false, &[]) };
        let of_another = Exit { process: "n2".to_owned(), ..ended.clone() };
        let later = Exit { time_ns: 1_500_000_000, ..ended.clone() };
        let exits = vec![ended, of_another, later];
        let verdict = Exits.check(&Record { history, exits, ..Record::default() });
        let messages: Vec<_> = verdict.anomalies.iter().map(|anomaly| anomaly.message.as_str()).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].starts_with("n2 ended") && messages[1].contains("1.500 s"), "{messages:?}");
    }

    #[test]
    fn damaged_rows_may_be_rebuilt_and_nothing_else_may_panic() {
        let mut script = Script::default();
        let (members, corruption) = (vec!["n1".to_owned()], Corruption::RowsFlip);
        let kind = Kind::Corrupt { members, corruption };
        script.at(1000).inject("corruption", 1000, kind, None, &["rows"]);
        let history = script.history();
        let lines = ["panicked at /registry/sled-0.34.7/src/a.rs:1", "panicked at raft/src/lib.rs:1"];
        let exits = vec![exit(true, &lines), Exit { process: "n2".to_owned(), ..exit(true, &lines[..1]) }];
        let record = Record { history, exits, ..Record::default() };
        let verdict = Exits.check(&record);
        assert_eq!(verdict.violations, 2, "{:?}", verdict.anomalies);
        assert_eq!(panics(&record), 2);
    }
}
