//! Coverage of a series: a single simulated run is too short to demand work of each kind.

use std::collections::BTreeMap;

use crate::report::Results;
use crate::workload;

/// Runs from which on a series must have done work of each kind.
const SERIES_MIN: usize = 100;
/// Least number of successful operations of each function of each workload.
const OK_MIN: u64 = 20;

/// Kinds of work and of faults that a series lacks.
#[must_use]
pub fn shortfalls(runs: &[Results]) -> Vec<String> {
    if runs.len() < SERIES_MIN {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let mut done: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for count in runs.iter().flat_map(|run| &run.operations) {
        *done.entry((count.workload.as_str(), count.function.to_string())).or_default() += count.ok;
    }
    let is_meant = |name: &str| runs.iter().any(|run| run.settings.workloads.iter().any(|one| one == name));
    for workload in workload::all().iter().filter(|workload| is_meant(workload.name())) {
        for function in workload.functions() {
            let ok = done.get(&(workload.name(), function.to_string())).copied().unwrap_or_default();
            if ok < OK_MIN {
                missing.push(format!("{}: {ok} successful operations {function}", workload.name()));
            }
        }
    }
    let mut acted: BTreeMap<&str, u64> = BTreeMap::new();
    for count in runs.iter().flat_map(|run| &run.faults) {
        *acted.entry(count.nemesis.as_str()).or_default() += count.faults;
    }
    let mut meant: Vec<&String> = runs.iter().flat_map(|run| &run.settings.nemeses).collect();
    meant.sort_unstable();
    meant.dedup();
    let idle = meant.into_iter().filter(|name| !acted.contains_key(name.as_str()));
    missing.extend(idle.map(|name| format!("no fault of {name}")));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Settings;
    use crate::history::Function;
    use crate::report::{FaultCount, OperationCount};

    fn run(ok: u64, nemesis: &str) -> Results {
        let count =
            |function| OperationCount { workload: "alloc-any".to_owned(), function, ok, fail: 0, info: 0 };
        Results {
            settings: Settings {
                workloads: vec!["alloc-any".to_owned()],
                nemeses: vec!["kill".to_owned()],
                ..Settings::default()
            },
            operations: vec![count(Function::Allocate), count(Function::Release)],
            faults: vec![FaultCount { nemesis: nemesis.to_owned(), faults: 2, failed: 0 }],
            ..Results::default()
        }
    }

    #[test]
    fn a_long_series_without_work_or_faults_is_weak() {
        assert!(shortfalls(&vec![run(1, "kill"); 100]).is_empty());
        assert!(shortfalls(&vec![run(0, "power"); 99]).is_empty(), "a short series says nothing");
        let weak = shortfalls(&vec![run(0, "power"); 100]);
        assert_eq!(weak.len(), 3, "{weak:?}");
        assert_eq!(weak.last().unwrap(), "no fault of kill");
    }
}
