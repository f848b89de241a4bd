//! Results of one run, as `results.json` has them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::availability::{self, AvailabilityRow};
use super::checked::Checked;
use super::counts::{
    FaultCount, OperationCount, PairCount, fault_counts, operation_counts, pair_counts, power_cuts,
};
use super::latency::{Latency, latencies};
use super::promise::{PromiseResult, promises};
use crate::checker::availability::gaps;
use crate::checker::intervals::{FaultTimes, faults, leaders, operations};
use crate::checker::{Record, Settings, panics};

/// Name of the file in the directory of a run.
pub const RESULTS: &str = "results.json";

/// Verdict on a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validity {
    /// No violation in a run that did enough.
    Yes,
    /// No violation, but the run did too little for a verdict.
    #[default]
    Unknown,
    /// A violation.
    No,
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "valid",
            Self::Unknown => "undecided",
            Self::No => "VIOLATED",
        })
    }
}

/// Results of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// Verdict.
    pub valid: Validity,
    /// Number of violations of all checkers.
    pub violations: u64,
    /// Reasons for which the run is too weak.
    pub shortfalls: Vec<String>,
    /// Broken promises that no checker sees, such as a cluster that does not recover.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Settings of the run.
    pub settings: Settings,
    /// Duration from the first to the last line of the history.
    pub duration_ms: u64,
    /// Verdict of each checker.
    pub checkers: Vec<Checked>,
    /// Verdict on each promise.
    pub promises: Vec<PromiseResult>,
    /// Operations by workload and function.
    pub operations: Vec<OperationCount>,
    /// Faults by nemesis.
    pub faults: Vec<FaultCount>,
    /// Operations of each workload under each nemesis.
    pub pairs: Vec<PairCount>,
    /// Number of power cuts of members.
    pub power_cuts: u64,
    /// Number of changes of the leader.
    pub leader_changes: u64,
    /// Number of panics in the logs that no fault explains.
    pub panics: u64,
    /// Number of leaked addresses (I8).
    pub leaks: u64,
    /// Number of events of the journal.
    pub events: u64,
    /// Latencies by function.
    pub latencies: Vec<Latency>,
    /// Availability by nemesis and target.
    pub availability: Vec<AvailabilityRow>,
}

/// Invariant whose violations are leaks.
const LEAKS: &str = "I8";

/// Computes the results of a run from the verdicts of its checkers.
#[must_use]
pub fn results(record: &Record, checkers: Vec<Checked>) -> Results {
    let operations = operations(&record.history);
    let faults = faults(&record.history);
    let times = FaultTimes::of(&faults);
    let shortfalls: Vec<String> =
        checkers.iter().flat_map(|checked| checked.verdict.shortfalls.iter().cloned()).collect();
    let violations = checkers.iter().map(|checked| checked.verdict.violations).sum();
    let ends = record.history.first().zip(record.history.last());
    let leaks = checkers.iter().filter(|checked| checked.id == LEAKS);
    Results {
        valid: validity(violations, &shortfalls),
        violations,
        promises: promises(&checkers, !shortfalls.is_empty()),
        shortfalls,
        failures: Vec::new(),
        settings: record.settings.clone(),
        duration_ms: ends.map_or(0, |(first, last)| last.time_ns.saturating_sub(first.time_ns) / 1_000_000),
        operations: operation_counts(&operations),
        faults: fault_counts(&faults),
        pairs: pair_counts(&operations, &faults),
        power_cuts: power_cuts(&faults),
        leader_changes: leaders(&record.samples).len().saturating_sub(1) as u64,
        panics: panics(record),
        leaks: leaks.map(|checked| checked.verdict.violations).sum(),
        events: record.journal.len() as u64,
        latencies: latencies(&operations, &times),
        availability: availability::rows(&gaps(record)),
        checkers,
    }
}

fn validity(violations: u64, shortfalls: &[String]) -> Validity {
    match (violations, shortfalls) {
        (0, []) => Validity::Yes,
        (0, _) => Validity::Unknown,
        _ => Validity::No,
    }
}

impl Results {
    /// The results with broken promises that the driver saw itself: they make a run invalid.
    #[must_use]
    pub fn with_failures(mut self, failures: &[String]) -> Self {
        if !failures.is_empty() {
            self.valid = Validity::No;
        }
        self.failures = failures.to_vec();
        self
    }

    /// Number of operations with this end: `ok`, `fail` and `info`.
    #[must_use]
    pub fn ends(&self) -> [u64; 3] {
        self.operations
            .iter()
            .fold([0; 3], |[ok, fail, info], count| [ok + count.ok, fail + count.fail, info + count.info])
    }

    /// Number of faults that took hold.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults.iter().map(|count| count.faults).sum()
    }

    /// Command that repeats the run.
    #[must_use]
    pub fn command(&self) -> String {
        let settings = &self.settings;
        if settings.is_simulated {
            return format!("ipam-jepsen sim --case seed-{}/case.json", settings.seed);
        }
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(",") };
        let mut command = format!(
            "ipam-jepsen live --workload {} --nemesis {} --time {} --members {} --seed {}",
            list(&settings.workloads),
            list(&settings.nemeses),
            time(settings.time_ms),
            settings.members,
            settings.seed
        );
        if settings.is_secure {
            command.push_str(" --secure");
        }
        for option in &settings.test_options {
            command.push_str(" --test-option ");
            command.push_str(option);
        }
        command
    }
}

fn time(time_ms: u64) -> String {
    if time_ms.is_multiple_of(1000) { format!("{}s", time_ms / 1000) } else { format!("{time_ms}ms") }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::checker::fixtures::Script;
    use crate::checker::{Exit, Verdict};
    use crate::history::{Function, Type, Value};
    use crate::nemesis::{Cut, Kind, Moment};

    fn power() -> Kind {
        let members = vec!["n1".to_owned(), "n2".to_owned()];
        Kind::Power { members, cut: Cut::Hard, moment: Moment::Now }
    }

    pub(in crate::report) fn record() -> Record {
        let mut script = Script::default();
        let value = || Value { workload: "hot".to_owned(), ..Value::default() };
        script.ok(1, Function::Allocate, value(), value());
        script.at(1000).inject("power", 2000, power(), Some("n1"), &["the marker is gone"]);
        script.begin(1, Function::Allocate, value());
        script.end(1, Function::Allocate, Type::Info, value());
        script.at(3000).heal("power", 2000, power(), &[]);
        script.lead("n2");
        script.ok(2, Function::Allocate, value(), value());
        let settings = Settings {
            seed: 7,
            workloads: vec!["hot".to_owned()],
            nemeses: vec!["power".to_owned()],
            members: 3,
            time_ms: 4000,
            is_secure: true,
            ..Settings::default()
        };
        let exit = Exit {
            time_ns: 5,
            process: "n1".to_owned(),
            status: "1".to_owned(),
            is_expected: true,
            complaints: vec!["thread panicked at x".to_owned()],
        };
        let (history, samples) = (script.history(), script.samples());
        Record { settings, history, samples, exits: vec![exit], ..Record::default() }
    }

    fn checked(violations: u64, shortfalls: &[&str]) -> Checked {
        let shortfalls = shortfalls.iter().map(|reason| (*reason).to_owned()).collect();
        let verdict = Verdict { violations, shortfalls, checked: 1, ..Verdict::default() };
        let text = || "t".to_owned();
        Checked { id: LEAKS.to_owned(), name: text(), about: text(), promises: vec![1], verdict }
    }

    #[test]
    fn counts_of_a_run() {
        let results = results(&record(), vec![checked(0, &[])]);
        assert_eq!((results.valid, results.ends()), (Validity::Yes, [2, 0, 1]));
        assert_eq!((results.power_cuts, results.fault_count(), results.leader_changes), (2, 1, 1));
        assert_eq!((results.panics, results.leaks, results.duration_ms), (1, 0, 3003));
        assert_eq!(results.pairs, []);
        assert_eq!(results.availability[0].gaps_ms, [2003]);
        assert_eq!(
            results.command(),
            "ipam-jepsen live --workload hot --nemesis power --time 4s --members 3 --seed 7 --secure"
        );
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
    }

    #[test]
    fn a_violation_outweighs_a_shortfall() {
        let valid =
            |violations, shortfalls: &[&str]| results(&record(), vec![checked(violations, shortfalls)]).valid;
        assert_eq!(valid(0, &["too little"]), Validity::Unknown);
        assert_eq!(valid(2, &["too little"]), Validity::No);
        let failed = results(&record(), vec![checked(0, &[])]).with_failures(&["no leader".to_owned()]);
        assert_eq!(failed.valid, Validity::No);
    }
}
