//! Intervals of a history: operations from begin to end, and faults from injection to healing.

use std::collections::BTreeMap;

use super::record::Sample;
use crate::history::{Function, Operation, Process, Type, Value};
use crate::nemesis::Fault;

/// Member of `value.detail` that marks the healing of a fault.
const HEAL: &str = "heal";

/// Operation from its begin to its end.
#[derive(Debug, Clone, Copy)]
pub struct Interval<'a> {
    /// Begin.
    pub begin: &'a Operation,
    /// End; absent if the run ended first.
    pub end: Option<&'a Operation>,
}

impl<'a> Interval<'a> {
    /// Kind of the end. An operation without an end is indeterminate.
    #[must_use]
    pub fn kind(&self) -> Type {
        self.end.map_or(Type::Info, |end| end.kind)
    }

    /// Value of the end, or of the begin if there is none.
    #[must_use]
    pub fn value(&self) -> &'a Value {
        &self.end.unwrap_or(self.begin).value
    }

    /// Time of the begin.
    #[must_use]
    pub fn begin_ns(&self) -> u64 {
        self.begin.time_ns
    }

    /// Time of the end; the maximum if there is none.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end.map_or(u64::MAX, |end| end.time_ns)
    }

    /// Indexes of begin and end.
    pub fn indexes(&self) -> impl Iterator<Item = u64> + use<'a> {
        [Some(self.begin), self.end].into_iter().flatten().map(|operation| operation.index)
    }
}

/// Returns the operations of clients in the order of their begins.
#[must_use]
pub fn operations(history: &[Operation]) -> Vec<Interval<'_>> {
    paired(history.iter().filter(|operation| operation.process != Process::Nemesis))
}

/// Pairs each begin with the next end of the same process and function.
fn paired<'a>(history: impl Iterator<Item = &'a Operation>) -> Vec<Interval<'a>> {
    let mut intervals: Vec<Interval<'a>> = Vec::new();
    let mut open = BTreeMap::new();
    for operation in history {
        if operation.is_invoke() {
            open.insert(operation.process, intervals.len());
            intervals.push(Interval { begin: operation, end: None });
        } else if let Some(at) = open.remove(&operation.process)
            && let Some(interval) = intervals.get_mut(at)
        {
            interval.end = Some(operation);
        }
    }
    intervals
}

/// Fault from its injection to the end of its healing.
#[derive(Debug, Clone)]
pub struct FaultInterval<'a> {
    /// The fault.
    pub fault: &'a Fault,
    /// Begin of the injection.
    pub inject: &'a Operation,
    /// End of the injection.
    pub injected: Option<&'a Operation>,
    /// Begin of the healing.
    pub heal: Option<&'a Operation>,
    /// End of the healing.
    pub healed: Option<&'a Operation>,
}

impl<'a> FaultInterval<'a> {
    /// Time of the begin.
    #[must_use]
    pub fn begin_ns(&self) -> u64 {
        self.inject.time_ns
    }

    /// Time from which on the cluster should recover; the maximum if the fault was never healed.
    ///
    /// A fault that ends by itself needs no healing.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        let by_itself = if self.fault.lasts_ms == 0 && self.heal.is_none() { self.injected } else { None };
        self.healed.or(by_itself).map_or(u64::MAX, |operation| operation.time_ns)
    }

    /// Returns true if the injection succeeded, and the healing as well if the fault has one.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_ok = |operation: Option<&Operation>| operation.is_some_and(|end| end.kind == Type::Ok);
        is_ok(self.injected) && (is_ok(self.healed) || (self.fault.lasts_ms == 0 && self.heal.is_none()))
    }

    /// Returns true if the fault was refused, so that nothing happened: a change of members, for example.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.injected.is_some_and(|end| end.kind == Type::Fail)
    }

    /// Evidence of injection and healing.
    pub fn evidence(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let ends = [self.injected, self.healed].into_iter().flatten();
        ends.flat_map(|end| end.value.evidence.iter().map(String::as_str))
    }

    /// Indexes of the operations of the fault.
    pub fn indexes(&self) -> impl Iterator<Item = u64> + use<'a> {
        let all = [Some(self.inject), self.injected, self.heal, self.healed];
        all.into_iter().flatten().map(|operation| operation.index)
    }
}

/// Returns all faults in the order of their begins. Equal faults are healed in the order of their begins.
#[must_use]
pub fn faults(history: &[Operation]) -> Vec<FaultInterval<'_>> {
    let mut faults: Vec<FaultInterval<'_>> = Vec::new();
    for operation in history.iter().filter(|operation| operation.f == Function::Fault) {
        let Some(fault) = &operation.value.fault else { continue };
        let heals = is_heal(operation);
        let mut same = faults.iter_mut().filter(|known| known.fault == fault);
        match (operation.is_invoke(), heals) {
            (true, false) => {
                drop(same);
                let inject = operation;
                faults.push(FaultInterval { fault, inject, injected: None, heal: None, healed: None });
            }
            (false, false) => {
                if let Some(known) = same.find(|known| known.injected.is_none()) {
                    known.injected = Some(operation);
                }
            }
            (true, true) => {
                if let Some(known) = same.find(|known| known.heal.is_none()) {
                    known.heal = Some(operation);
                }
            }
            (false, true) => {
                if let Some(known) = same.find(|known| known.heal.is_some() && known.healed.is_none()) {
                    known.healed = Some(operation);
                }
            }
        }
    }
    faults
}

/// Leader of one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader<'a> {
    /// Time at which a member first reported this leader.
    pub time_ns: u64,
    /// Term.
    pub term: u64,
    /// Name.
    pub name: &'a str,
}

/// Leaders in the order of terms. A member that lags behind still names the leader of an earlier term.
#[must_use]
pub fn leaders(samples: &[Sample]) -> Vec<Leader<'_>> {
    let mut leaders: Vec<Leader<'_>> = Vec::new();
    for sample in samples {
        if let Some(name) = sample.leader.as_deref()
            && leaders.last().is_none_or(|last| last.term < sample.term)
        {
            leaders.push(Leader { time_ns: sample.time_ns, term: sample.term, name });
        }
    }
    leaders
}

/// Leader at a time, if one was known before.
#[must_use]
pub fn leader_at<'a>(leaders: &[Leader<'a>], time_ns: u64) -> Option<&'a str> {
    let after = leaders.partition_point(|leader| leader.time_ns <= time_ns);
    after.checked_sub(1).and_then(|at| leaders.get(at)).map(|leader| leader.name)
}

/// Set of times in which at least one fault was active.
#[derive(Debug, Clone, Default)]
pub struct FaultTimes(Vec<(u64, u64)>);

impl FaultTimes {
    /// The times of these faults.
    #[must_use]
    pub fn of(faults: &[FaultInterval<'_>]) -> Self {
        let mut merged: Vec<(u64, u64)> = Vec::new();
        // Faults are in the order of their begins.
        for (begin, end) in faults.iter().map(|fault| (fault.begin_ns(), fault.end_ns())) {
            match merged.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        Self(merged)
    }

    /// Returns true if an operation and a fault overlap.
    #[must_use]
    pub fn overlap(&self, begin_ns: u64, end_ns: u64) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < begin_ns);
        self.0.get(at).is_some_and(|(begin, _)| *begin <= end_ns)
    }
}

fn is_heal(operation: &Operation) -> bool {
    operation.value.detail.get(HEAL).and_then(serde_json::Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::Script;
    use crate::nemesis::Kind;

    fn kill(member: &str) -> Kind {
        Kind::Kill { members: vec![member.to_owned()] }
    }

    #[test]
    fn operations_of_one_process_are_paired_and_the_last_may_be_open() {
        let mut script = Script::default();
        script.ok(1, Function::Read, Value::default(), Value::default());
        script.begin(2, Function::Allocate, Value::default());
        let history = script.history();
        let intervals = operations(&history);
        assert_eq!(intervals.len(), 2);
        assert_eq!((intervals[0].kind(), intervals[0].end_ns() > intervals[0].begin_ns()), (Type::Ok, true));
        assert_eq!((intervals[1].kind(), intervals[1].end_ns()), (Type::Info, u64::MAX));
    }

    #[test]
    fn overlapping_faults_keep_their_own_ends() {
        let mut script = Script::default();
        script.inject("kill", 1000, kill("n1"), Some("n1"), &["signal 9"]);
        script.inject("kill", 1000, kill("n2"), Some("n2"), &["signal 9"]);
        script.heal("kill", 1000, kill("n1"), &[]);
        let history = script.history();
        let faults = faults(&history);
        assert_eq!(faults.len(), 2);
        assert!(faults[0].is_complete() && !faults[1].is_complete());
        assert_eq!(faults[1].end_ns(), u64::MAX);
        assert_eq!(faults[0].evidence().collect::<Vec<_>>(), ["signal 9"]);
        let samples = script.samples();
        let leaders = leaders(&samples);
        assert_eq!(leaders.iter().map(|leader| leader.name).collect::<Vec<_>>(), ["n1", "n2"]);
        assert_eq!(leader_at(&leaders, faults[1].begin_ns()), Some("n2"));
        assert_eq!(leader_at(&leaders, faults[1].begin_ns() - 1), Some("n1"));
    }

    #[test]
    fn a_fault_that_ends_by_itself_ends_with_its_injection() {
        let mut script = Script::default();
        script.inject("transfer", 0, Kind::TransferLeader { to: "n2".to_owned() }, None, &["n2 leads"]);
        let history = script.history();
        let faults = faults(&history);
        assert!(faults[0].is_complete());
        assert_eq!(faults[0].end_ns(), faults[0].injected.unwrap().time_ns);
    }

    #[test]
    fn times_of_overlapping_faults_are_merged() {
        let mut script = Script::default();
        script.at(1_000).inject("kill", 1000, kill("n1"), None, &["x"]);
        script.at(5_000).heal("kill", 1000, kill("n1"), &[]);
        let history = script.history();
        let times = FaultTimes::of(&faults(&history));
        assert!(times.overlap(0, 1_000_000_000));
        assert!(times.overlap(4_000_000_000, 4_100_000_000));
        assert!(!times.overlap(0, 900_000_000));
        assert!(!times.overlap(6_000_000_000, 7_000_000_000));
    }
}
