//! Counts: operations by workload and function, faults by nemesis, and operations of a workload under a
//! nemesis.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checker::intervals::{FaultInterval, FaultTimes, Interval};
use crate::history::{Function, Type};
use crate::nemesis::Kind;

/// Operations of one workload and function by their ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCount {
    /// Workload.
    pub workload: String,
    /// Function.
    pub function: Function,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that surely took no effect.
    pub fail: u64,
    /// Operations with an unknown outcome.
    pub info: u64,
}

/// Faults of one nemesis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCount {
    /// Nemesis.
    pub nemesis: String,
    /// Faults that took hold and were healed.
    pub faults: u64,
    /// Faults that did not take hold or were not healed.
    pub failed: u64,
}

/// Successful operations of a workload while faults of a nemesis were active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCount {
    /// Workload.
    pub workload: String,
    /// Nemesis.
    pub nemesis: String,
    /// Successful operations.
    pub ok: u64,
}

/// Counts operations.
pub(super) fn operation_counts(operations: &[Interval<'_>]) -> Vec<OperationCount> {
    let mut counts: BTreeMap<(&str, Function), [u64; 3]> = BTreeMap::new();
    for interval in operations {
        let value = &interval.begin.value;
        let [ok, fail, info] = counts.entry((value.workload.as_str(), interval.begin.f)).or_default();
        match interval.kind() {
            Type::Ok => *ok += 1,
            Type::Fail => *fail += 1,
            Type::Info | Type::Invoke => *info += 1,
        }
    }
    let row = |((workload, function), [ok, fail, info]): ((&str, Function), [u64; 3])| OperationCount {
        workload: workload.to_owned(),
        function,
        ok,
        fail,
        info,
    };
    counts.into_iter().map(row).collect()
}

/// Counts faults.
pub(super) fn fault_counts(faults: &[FaultInterval<'_>]) -> Vec<FaultCount> {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for fault in faults {
        let (done, failed) = counts.entry(fault.fault.nemesis.as_str()).or_default();
        if took_hold(fault) {
            *done += 1;
        } else {
            *failed += 1;
        }
    }
    let row = |(nemesis, (faults, failed)): (&str, (u64, u64))| FaultCount {
        nemesis: nemesis.to_owned(),
        faults,
        failed,
    };
    counts.into_iter().map(row).collect()
}

/// Number of power cuts: of each member, and twice for a cut that is repeated while members start.
pub(super) fn power_cuts(faults: &[FaultInterval<'_>]) -> u64 {
    let cuts = faults.iter().filter(|fault| took_hold(fault)).map(|fault| match &fault.fault.kind {
        Kind::Power { members, moment: crate::nemesis::Moment::Starting, .. } => 2 * members.len(),
        Kind::Power { members, .. } => members.len(),
        _ => 0,
    });
    cuts.sum::<usize>() as u64
}

/// Counts successful operations of each workload under each nemesis.
pub(super) fn pair_counts(operations: &[Interval<'_>], faults: &[FaultInterval<'_>]) -> Vec<PairCount> {
    let mut of_nemesis: BTreeMap<&str, Vec<FaultInterval<'_>>> = BTreeMap::new();
    for fault in faults.iter().filter(|fault| took_hold(fault)) {
        of_nemesis.entry(fault.fault.nemesis.as_str()).or_default().push(fault.clone());
    }
    let times: Vec<(&str, FaultTimes)> =
        of_nemesis.into_iter().map(|(nemesis, faults)| (nemesis, FaultTimes::of(&faults))).collect();
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for interval in operations.iter().filter(|interval| interval.kind() == Type::Ok) {
        for (nemesis, times) in &times {
            if times.overlap(interval.begin_ns(), interval.end_ns()) {
                let key = (interval.begin.value.workload.as_str(), *nemesis);
                *counts.entry(key).or_default() += 1;
            }
        }
    }
    let row = |((workload, nemesis), ok): ((&str, &str), u64)| PairCount {
        workload: workload.to_owned(),
        nemesis: nemesis.to_owned(),
        ok,
    };
    counts.into_iter().map(row).collect()
}

fn took_hold(fault: &FaultInterval<'_>) -> bool {
    fault.is_complete() && fault.evidence().next().is_some()
}
