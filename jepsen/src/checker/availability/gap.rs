//! Gap of a fault: longest time without an accepted write until writes are accepted again.

use super::target::Target;
use super::writes::Writes;
use crate::checker::intervals::{Interval, faults, leader_at, leaders, operations};
use crate::checker::record::Record;
use crate::history::{Function, Type};
use crate::nemesis::Fault;

/// Availability around one fault.
#[derive(Debug, Clone)]
pub struct FaultGap<'a> {
    /// The fault.
    pub fault: &'a Fault,
    /// Index of the operation that injected the fault.
    pub index: u64,
    /// Part of the cluster that the fault hits.
    pub target: Target,
    /// Begin of the injection.
    pub begin_ns: u64,
    /// End of the healing, or of the run.
    pub end_ns: u64,
    /// Longest time without an accepted write; none if no client wrote.
    pub gap_ns: Option<u64>,
    /// Number of client operations that began while the fault was active.
    pub operations: u64,
    /// Number of these operations that succeeded.
    pub ok: u64,
    /// Evidence that the fault took hold.
    pub evidence: Vec<&'a str>,
    /// True if the injection was refused, so that nothing happened.
    pub is_refused: bool,
}

/// Returns the gap of each fault, in the order of begins.
///
/// A gap begins at the begin of the fault at the earliest, and ends with the first accepted write after the
/// healing at the latest. Without such a write, the gap ends with the last attempt.
#[must_use]
pub fn gaps(record: &Record) -> Vec<FaultGap<'_>> {
    let operations = operations(&record.history);
    let writes = Writes::of(&operations);
    let last_ns = record.history.last().map_or(0, |last| last.time_ns);
    let begins: Vec<(u64, bool)> = operations
        .iter()
        .filter(|one| is_of_client(one))
        .map(|one| (one.begin_ns(), one.kind() == Type::Ok))
        .collect();
    let (faults, leaders) = (faults(&record.history), leaders(&record.samples));
    let mut gaps = Vec::with_capacity(faults.len());
    for fault in &faults {
        let (begin_ns, end_ns) = (fault.begin_ns(), fault.end_ns().min(last_ns));
        let from = begins.partition_point(|(at, _)| *at < begin_ns);
        let to = begins.partition_point(|(at, _)| *at <= end_ns);
        let active = begins.get(from..to).unwrap_or_default();
        gaps.push(FaultGap {
            fault: fault.fault,
            index: fault.inject.index,
            target: Target::of(fault.fault, record.settings.members, leader_at(&leaders, begin_ns)),
            begin_ns,
            end_ns,
            gap_ns: longest_gap(&writes, begin_ns, end_ns),
            operations: active.len() as u64,
            ok: active.iter().filter(|(_, is_ok)| *is_ok).count() as u64,
            evidence: fault.evidence().collect(),
            is_refused: fault.is_refused(),
        });
    }
    gaps
}

fn is_of_client(interval: &Interval<'_>) -> bool {
    !matches!(interval.begin.f, Function::Farm | Function::Fault)
}

/// Longest time without an accepted write from `begin` until the first one after `end`.
fn longest_gap(writes: &Writes, begin: u64, end: u64) -> Option<u64> {
    let last_attempt = writes.attempts.last()?.0;
    if last_attempt <= begin {
        return None;
    }
    let from = writes.accepted.partition_point(|at| *at <= begin);
    let (mut last, mut longest) = (begin, 0);
    for at in writes.accepted.iter().skip(from) {
        longest = longest.max(at - last);
        last = *at;
        if last > end {
            return Some(longest);
        }
    }
    Some(longest.max(last_attempt.saturating_sub(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Settings;
    use crate::checker::fixtures::Script;
    use crate::history::Value;
    use crate::nemesis::Kind;

    fn write(script: &mut Script, at_ms: u64) {
        script.at(at_ms).ok(1, Function::Allocate, Value::default(), Value::default());
    }

    #[test]
    fn a_gap_begins_with_the_fault_and_ends_with_the_first_accepted_write_after_it() {
        let kill = || Kind::Kill { members: vec!["n1".to_owned()] };
        let mut script = Script::default();
        write(&mut script, 900);
        script.at(1000).inject("kill", 5000, kill(), Some("n1"), &["signal 9"]);
        write(&mut script, 2499);
        write(&mut script, 3000);
        script.at(6000).heal("kill", 5000, kill(), &[]);
        write(&mut script, 6100);
        write(&mut script, 60_000);
        let settings = Settings { members: 3, ..Settings::default() };
        let (history, samples) = (script.history(), script.samples());
        let record = Record { history, samples, settings, ..Record::default() };
        let gaps = gaps(&record);
        assert_eq!(gaps.len(), 1);
        assert_eq!((gaps[0].target, gaps[0].operations, gaps[0].ok), (Target::Leader, 2, 2));
        assert_eq!(gaps[0].gap_ns, Some(3_100_000_000));
        assert_eq!((gaps[0].begin_ns, gaps[0].end_ns), (1_000_000_000, 6_001_000_000));
    }

    #[test]
    fn a_run_without_writes_has_no_gap() {
        let mut script = Script::default();
        script.inject("restore", 0, Kind::Restore, None, &["x"]);
        script.ok(1, Function::Read, Value::default(), Value::default());
        let record = Record { history: script.history(), ..Record::default() };
        assert_eq!(gaps(&record)[0].gap_ns, None);
    }
}
