//! Shrinking: a smaller case that fails as a given one does.

use std::path::Path;

use anyhow::Result;

use super::case::Case;
use super::process::{SimulatedRun, run_case};
use crate::checker::Record;
use crate::history::{Function, Operation, Process, Type};
use crate::live::run::Step;
use crate::report::Validity;
use crate::store;

/// Shortest time of a case in milliseconds.
const TIME_MS_MIN: u64 = 1_000;

/// Makes a failing case smaller: smaller cases must break the same invariant, or fail without one.
///
/// # Errors
/// If a run can't be made.
pub fn smaller(found: &SimulatedRun, dir: &Path, tries: usize) -> Result<Case> {
    let broken = found.broken();
    let script = store::read(dir).map(|record| script_of(&record)).ok();
    let scripted = Case { script, ..found.case.clone() };
    let try_dir = dir.with_extension("smaller");
    let fails = |case: &Case| {
        let other = run_case(case, &try_dir, None)?;
        let is_alike = match broken.as_slice() {
            [] => other.results.valid == Validity::No && other.broken().is_empty(),
            broken => other.broken().iter().any(|id| broken.contains(id)),
        };
        anyhow::Ok(is_alike)
    };
    let begin = if fails(&scripted)? { &scripted } else { &found.case };
    let small = shrink(begin, tries, fails);
    let _gone = std::fs::remove_dir_all(&try_dir);
    small
}

/// Faults of a run, with the times of their injection.
fn script_of(record: &Record) -> Vec<Step> {
    let is_injection = |operation: &&Operation| {
        operation.process == Process::Nemesis
            && operation.f == Function::Fault
            && operation.kind == Type::Invoke
            && operation.value.detail.is_null()
    };
    let step = |operation: &Operation| {
        let fault = operation.value.fault.clone()?;
        Some(Step { at_ms: operation.time_ns / 1_000_000, fault })
    };
    record.history.iter().filter(is_injection).filter_map(step).collect()
}

/// Makes a failing case smaller until no smaller one fails, or `tries` are over. `fails` makes the run.
///
/// # Errors
/// If a run can't be made.
fn shrink(case: &Case, tries: usize, mut fails: impl FnMut(&Case) -> Result<bool>) -> Result<Case> {
    let mut smallest = case.clone();
    let mut left = tries;
    'smaller: loop {
        for candidate in candidates(&smallest) {
            if left == 0 {
                return Ok(smallest);
            }
            left -= 1;
            if fails(&candidate)? {
                smallest = candidate;
                continue 'smaller;
            }
        }
        return Ok(smallest);
    }
}

/// Smaller cases, the smallest first.
fn candidates(case: &Case) -> Vec<Case> {
    let mut smaller = Vec::new();
    if case.workloads.len() > 1 {
        let alone = case.workloads.iter().map(|name| vec![name.clone()]);
        let without = case
            .workloads
            .iter()
            .map(|name| case.workloads.iter().filter(|other| *other != name).cloned().collect::<Vec<_>>());
        for workloads in alone.chain(without) {
            smaller.push(Case { workloads, ..case.clone() });
        }
    }
    if let Some(script) = &case.script {
        // All, a half, a quarter, …, one.
        let mut length = script.len();
        while length > 0 {
            for begin in (0..script.len()).step_by(length) {
                let mut left = script.clone();
                left.drain(begin..script.len().min(begin + length));
                smaller.push(Case { script: Some(left), ..case.clone() });
            }
            length /= 2;
        }
    }
    let sessions = case.sessions_max.unwrap_or(64);
    for fewer in [1, 2, sessions / 2, sessions.saturating_sub(1)] {
        if fewer > 0 && fewer < sessions {
            smaller.push(Case { sessions_max: Some(fewer), ..case.clone() });
        }
    }
    for time_ms in [case.time_ms / 4, case.time_ms / 2, case.time_ms / 4 * 3] {
        if time_ms >= TIME_MS_MIN {
            smaller.push(Case { time_ms, ..case.clone() });
        }
    }
    smaller
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::{Fault, Kind};

    fn case() -> Case {
        let step = |at_ms: u64| Step {
            at_ms,
            fault: Fault {
                nemesis: "kill".to_owned(),
                lasts_ms: 500,
                kind: Kind::Kill { members: vec![format!("n{}", at_ms % 3 + 1)] },
            },
        };
        Case {
            seed: 1,
            members: 3,
            workloads: ["alloc-any", "churn", "reads"].map(str::to_owned).to_vec(),
            nemeses: vec!["kill".to_owned()],
            time_ms: 60_000,
            pace_ms: 240,
            sessions_max: None,
            script: Some((1..=20).map(step).collect()),
            test_options: Vec::new(),
        }
    }

    #[test]
    fn a_shrunk_case_keeps_all_that_its_failure_needs() {
        // Fails with two certain faults, one workload, three sessions, and five seconds.
        let mut runs = 0;
        let needs = |case: &Case| {
            let at = |at_ms| case.script.iter().flatten().any(|step| step.at_ms == at_ms);
            let sessions = case.sessions_max.is_none_or(|most| most >= 3);
            case.workloads.iter().any(|name| name == "churn")
                && at(4)
                && at(17)
                && sessions
                && case.time_ms >= 5_000
        };
        let small = shrink(&case(), 500, |case| {
            runs += 1;
            Ok(needs(case))
        });
        let small = small.unwrap();
        assert!(needs(&small) && runs < 200, "{runs}");
        assert_eq!(small.workloads, ["churn"]);
        assert_eq!(small.script.unwrap().iter().map(|step| step.at_ms).collect::<Vec<_>>(), [4, 17]);
        assert_eq!(small.sessions_max, Some(3));
        assert!(small.time_ms < 9_000, "{}", small.time_ms);
    }

    #[test]
    fn tries_are_bounded_and_a_case_that_never_fails_stays() {
        let mut runs = 0;
        let same = shrink(&case(), 7, |_| {
            runs += 1;
            Ok(false)
        });
        assert_eq!((same.unwrap(), runs), (case(), 7));
    }
}
