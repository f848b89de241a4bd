//! I17: a run is valid only if its faults took hold and its clients did enough under them.
//!
//! A weak run proves nothing, however few violations it has. So this checker reports shortfalls, and no
//! violations.

use std::collections::{BTreeMap, BTreeSet};

use super::availability::{Target, isolates};
use super::intervals::{FaultInterval, FaultTimes, faults, leader_at, leaders, operations};
use super::{Checker, Record, Verdict};
use crate::history::{Function, Type};
use crate::nemesis::{Change, Kind};
use crate::workload;

/// Checker of I17.
#[derive(Debug)]
pub(super) struct Coverage;

/// Least number of successful operations of each function of each workload under faults, in a long run.
const OK_MIN: u64 = 3;
/// Time of a run for which each function needs one successful operation.
const OK_MS: u64 = 20_000;
/// Least number of successful operations under faults.
const UNDER_FAULTS_MIN: u64 = 50;
/// Least number of successful operations of a run.
const RUN_MIN: u64 = 200;
/// Least number of successful operations per second.
const PER_SECOND_MIN: u64 = 5;
/// Number of nemeses up to which each must act in a run.
const EACH_MAX: usize = 3;
/// Time in which one of many nemeses must act.
const TURN_MS: u64 = 10_000;
/// Minimum duration of a leader's loss after which a new leader must be elected.
const ELECTION_NS: u64 = 3_000_000_000;
/// Maximum number of faults without effect that are listed.
const LISTED_MAX: usize = 5;

impl Checker for Coverage {
    fn id(&self) -> &'static str {
        "I17"
    }

    fn name(&self) -> &'static str {
        "coverage"
    }

    fn promises(&self) -> &'static [u8] {
        &[]
    }

    fn about(&self) -> &'static str {
        "Every fault took hold, leaders changed where meant, and each workload did enough under faults."
    }

    fn check(&self, record: &Record) -> Verdict {
        let demands = workload::all();
        let demands = demands.iter().map(|one| (one.name(), one.functions())).collect();
        check(record, &demands)
    }
}

/// Functions that each workload must have called with success under faults.
type Demands = BTreeMap<&'static str, &'static [Function]>;

fn check(record: &Record, demands: &Demands) -> Verdict {
    let mut verdict = Verdict::default();
    let faults = faults(&record.history);
    check_end(record, &faults, &mut verdict);
    check_faults(record, &faults, &mut verdict);
    check_leaders(record, &faults, &mut verdict);
    // Many simulated runs together must do enough work.
    if !record.settings.is_simulated {
        check_work(record, &faults, demands, &mut verdict);
    }
    verdict
}

/// Checks that the run ended in an orderly way with the states of all members.
fn check_end(record: &Record, faults: &[FaultInterval<'_>], verdict: &mut Verdict) {
    verdict.checked += 1;
    if !record.settings.is_complete {
        verdict.shortfall("the run did not end in an orderly way");
    }
    let members = members_at_end(record.settings.members, faults);
    if record.finals.len() < members {
        let count = record.finals.len();
        verdict.shortfall(format!("the final states of {count} of {members} members were collected"));
    }
    if record.journal.is_empty() {
        verdict.shortfall("the journal was not collected");
    }
    if record.samples.is_empty() {
        verdict.shortfall("no digest was sampled");
    }
}

fn members_at_end(members: usize, faults: &[FaultInterval<'_>]) -> usize {
    let changes = faults.iter().filter(|fault| fault.is_complete());
    changes.fold(members, |members, fault| match &fault.fault.kind {
        Kind::Membership { change: Change::Add } => members + 1,
        Kind::Membership { change: Change::Remove { .. } } => members.saturating_sub(1),
        _ => members,
    })
}

/// Checks that each fault took hold and was healed, and that the nemeses acted.
fn check_faults(record: &Record, faults: &[FaultInterval<'_>], verdict: &mut Verdict) {
    let mut acted: BTreeSet<&str> = BTreeSet::new();
    let (mut without_effect, mut listed) = (0_u64, Vec::new());
    for fault in faults {
        verdict.checked += 1;
        let nemesis = fault.fault.nemesis.as_str();
        if fault.is_refused() {
            continue;
        }
        let problem = if !fault.is_complete() {
            let ends = [fault.injected, fault.healed].into_iter().flatten();
            let error = ends.filter_map(|end| end.value.error.as_deref()).next();
            Some(error.unwrap_or("not healed").to_owned())
        } else if fault.evidence().next().is_none() {
            Some("no evidence".to_owned())
        } else {
            None
        };
        match problem {
            None => {
                acted.insert(nemesis);
            }
            Some(problem) => {
                without_effect += 1;
                if listed.len() < LISTED_MAX {
                    listed.push(format!("{nemesis} (operation {}): {problem}", fault.inject.index));
                }
            }
        }
    }
    if without_effect > 0 {
        verdict.shortfall(format!("{without_effect} faults did not take hold: {}", listed.join("; ")));
    }
    let wanted = &record.settings.nemeses;
    let silent: Vec<&str> =
        wanted.iter().map(String::as_str).filter(|nemesis| !acted.contains(nemesis)).collect();
    let turns = usize::try_from(record.settings.time_ms / TURN_MS).unwrap_or(usize::MAX);
    let least = if wanted.len() <= EACH_MAX { wanted.len() } else { wanted.len().min(turns) };
    if wanted.len() - silent.len() < least {
        verdict.shortfall(format!("nemeses without a fault that took hold: {}", silent.join(", ")));
    }
    verdict.figure("faults", faults.len());
    verdict.figure("nemeses that acted", format!("{} of {}", wanted.len() - silent.len(), wanted.len()));
}

/// Checks that the leader changed if a fault disabled the previous leader for long enough.
fn check_leaders(record: &Record, faults: &[FaultInterval<'_>], verdict: &mut Verdict) {
    let leaders = leaders(&record.samples);
    let changes = leaders.len().saturating_sub(1);
    verdict.figure("changes of the leader", changes);
    let members = record.settings.members;
    let meant = faults.iter().filter(|fault| fault.is_complete()).find(|fault| {
        let leader = leader_at(&leaders, fault.begin_ns());
        let is_long = fault.end_ns().saturating_sub(fault.begin_ns()) >= ELECTION_NS;
        let target = Target::of(fault.fault, members, leader);
        let hits_leader = matches!(target, Target::Leader | Target::All | Target::Rolling);
        match &fault.fault.kind {
            Kind::Kill { .. } | Kind::Pause { .. } | Kind::Power { .. } | Kind::FailingDisk { .. } => {
                is_long && hits_leader
            }
            Kind::Restart { .. } | Kind::Upgrade { .. } | Kind::TransferLeader { .. } => true,
            Kind::Partition { links } => {
                is_long && leader.is_some_and(|leader| isolates(links, leader, members))
            }
            _ => false,
        }
    });
    verdict.checked += 1;
    if let Some(fault) = meant.filter(|_| changes == 0) {
        let nemesis = &fault.fault.nemesis;
        verdict.shortfall(format!(
            "the leader never changed, and {nemesis} (operation {}) meant that",
            fault.inject.index
        ));
    }
}

/// Checks the number of successful operations, in total and of each function under faults.
fn check_work(record: &Record, faults: &[FaultInterval<'_>], demands: &Demands, verdict: &mut Verdict) {
    let times = FaultTimes::of(faults);
    let is_calm = faults.is_empty() && record.settings.nemeses.is_empty();
    let (mut total, mut under) = (0_u64, 0_u64);
    let mut counts: BTreeMap<(&str, Function), u64> = BTreeMap::new();
    for interval in operations(&record.history) {
        if interval.kind() != Type::Ok {
            continue;
        }
        total += 1;
        if is_calm || times.overlap(interval.begin_ns(), interval.end_ns()) {
            under += 1;
            let key = (interval.begin.value.workload.as_str(), interval.begin.f);
            *counts.entry(key).or_default() += 1;
        }
    }
    let least = RUN_MIN.max(PER_SECOND_MIN * record.settings.time_ms / 1000);
    verdict.checked += 1;
    if total < least {
        verdict.shortfall(format!("{total} operations succeeded; a run of this time needs {least}"));
    }
    if under < UNDER_FAULTS_MIN {
        verdict.shortfall(format!("{under} operations succeeded under faults; it needs {UNDER_FAULTS_MIN}"));
    }
    let least = (record.settings.time_ms / OK_MS).clamp(1, OK_MIN);
    for name in &record.settings.workloads {
        let Some((name, functions)) = demands.get_key_value(name.as_str()) else {
            verdict.shortfall(format!("the workload {name} is unknown"));
            continue;
        };
        let count = |function: &Function| counts.get(&(*name, *function)).copied().unwrap_or_default();
        verdict.checked += functions.len() as u64;
        let rare = functions.iter().filter(|function| count(function) < least);
        let rare: Vec<String> = rare.map(|function| format!("{function} {}", count(function))).collect();
        if !rare.is_empty() {
            let rare = rare.join(", ");
            verdict.shortfall(format!("{name}: fewer than {least} successes under faults: {rare}"));
        }
    }
    verdict.figure("successful operations", total);
    verdict.figure("successful operations under faults", under);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::{Script, event, final_state};
    use crate::checker::{Final, Settings};
    use crate::history::Value;
    use crate::nemesis::Kind;

    const FUNCTIONS: &[Function] = &[Function::Allocate];

    fn kill() -> Kind {
        Kind::Kill { members: vec!["n1".to_owned()] }
    }

    fn script(evidence: &[&str], operations: u64, leaders: &[&str]) -> Script {
        let mut script = Script::default();
        script.inject("kill", 4000, kill(), Some("n1"), evidence);
        for _ in 0..operations {
            let value = Value { workload: "hot".to_owned(), ..Value::default() };
            script.ok(1, Function::Allocate, value.clone(), value);
        }
        for leader in leaders {
            script.lead(leader);
        }
        script.at(5000).heal("kill", 4000, kill(), &[]);
        script
    }

    fn record(script: &Script) -> Record {
        let finals: Vec<Final> = ["n1", "n2", "n3"].map(final_state).into_iter().collect();
        let settings = Settings {
            workloads: vec!["hot".to_owned()],
            nemeses: vec!["kill".to_owned()],
            members: 3,
            time_ms: 5000,
            is_complete: true,
            ..Settings::default()
        };
        let (history, samples) = (script.history(), script.samples());
        let journal = vec![event(1, 0, "pool.created", None)];
        Record { settings, history, journal, finals, samples, exits: Vec::new() }
    }

    fn shortfalls(record: &Record) -> Vec<String> {
        check(record, &BTreeMap::from([("hot", FUNCTIONS)])).shortfalls
    }

    #[test]
    fn a_run_that_did_enough_is_valid() {
        assert_eq!(shortfalls(&record(&script(&["signal 9"], 300, &["n2"]))), Vec::<String>::new());
    }

    #[test]
    fn faults_without_evidence_and_idle_runs_are_rejected() {
        let weak = shortfalls(&record(&script(&[], 300, &["n2"])));
        assert!(weak[0].contains("1 faults did not take hold"), "{weak:?}");
        assert!(weak[1].contains("nemeses without a fault that took hold: kill"), "{weak:?}");
        let weak = shortfalls(&record(&script(&["signal 9"], 2, &["n2"])));
        assert!(weak[0].contains("2 operations succeeded"), "{weak:?}");
        assert!(weak[1].contains("2 operations succeeded under faults"), "{weak:?}");
        let mut one = record(&script(&["signal 9"], 0, &["n2"]));
        one.settings.time_ms = 50_000;
        assert!(shortfalls(&one)[2].contains("hot: fewer than 2 successes under faults: allocate 0"));
    }

    #[test]
    fn a_killed_leader_without_a_successor_is_rejected() {
        let weak = shortfalls(&record(&script(&["signal 9"], 300, &[])));
        assert_eq!(weak.len(), 1, "{weak:?}");
        assert!(weak[0].contains("the leader never changed"));
    }

    #[test]
    fn incomplete_ends_are_rejected() {
        let mut one = record(&script(&["signal 9"], 300, &["n2"]));
        one.finals.pop();
        one.settings.is_complete = false;
        one.journal.clear();
        assert_eq!(shortfalls(&one).len(), 3);
    }
}
