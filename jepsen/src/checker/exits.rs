//! I13: no process panics, breaks an invariant or ends without a fault that explains it.

use super::intervals::faults;
use super::{Checker, Record, Verdict};

/// Checker of I13.
#[derive(Debug)]
pub(super) struct Exits;

/// Longest time between the end of a process and a fault that is shown with it.
const NEAR_NS: u64 = 5_000_000_000;

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
            // The faults around the end, since they probably have to do with it.
            let near: Vec<u64> = faults
                .iter()
                .filter(|fault| {
                    fault.begin_ns() <= exit.time_ns && exit.time_ns <= fault.end_ns().saturating_add(NEAR_NS)
                })
                .map(|fault| fault.inject.index)
                .collect();
            let time_s = seconds(exit.time_ns);
            if !exit.is_expected {
                let message =
                    format!("{} ended with {} after {time_s} without a cause", exit.process, exit.status);
                verdict.violated(message, near.iter().copied());
            }
            for complaint in &exit.complaints {
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

fn seconds(time_ns: u64) -> String {
    format!("{}.{:03} s", time_ns / 1_000_000_000, time_ns / 1_000_000 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Exit;
    use crate::checker::fixtures::Script;
    use crate::nemesis::Kind;

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
}
