//! Results of all rounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::measurement::Measurement;
use crate::bench::lab::Subject;
use crate::bench::load::{Load, Measured};

/// Results by measurement and system, with one entry per round.
#[derive(Debug, Default)]
pub(in crate::bench) struct Results {
    rounds: BTreeMap<(&'static str, Subject), Vec<Measured>>,
    /// Measurements that were not possible, with the reason.
    pub(super) failures: Vec<String>,
}

impl Results {
    /// Adds a round.
    pub(super) fn add(&mut self, measurement: &'static str, subject: Subject, measured: Measured) {
        self.rounds.entry((measurement, subject)).or_default().push(measured);
    }

    /// Median of a figure over all rounds.
    pub(super) fn median(&self, measurement: &str, subject: Subject, figure: &str) -> Option<f64> {
        let rounds = self.rounds.iter().find(|((name, of), _)| *name == measurement && *of == subject)?.1;
        median(rounds.iter().filter_map(|measured| measured.figure(figure)).collect())
    }

    /// All loads of a measurement: their names with the system, and the sum of all rounds.
    pub(super) fn loads(&self, measurement: &str) -> Vec<(String, Load)> {
        let mut loads: Vec<(String, Load)> = Vec::new();
        let of_it = self.rounds.iter().filter(|((name, _), _)| *name == measurement);
        for ((_, subject), rounds) in of_it {
            for (name, load) in rounds.iter().flat_map(|measured| &measured.loads) {
                let title = [subject.name(), name].join(" ").trim_end().to_owned();
                match loads.iter_mut().find(|(known, _)| *known == title) {
                    Some((_, sum)) => sum.merge(load),
                    None => loads.push((title, load.clone())),
                }
            }
        }
        loads
    }

    /// Names of all measurements with results, in the order in which they ran.
    pub(super) fn measurements(&self) -> Vec<&'static str> {
        let has = |name: &str| self.rounds.keys().any(|(known, _)| *known == name);
        Measurement::ALL.iter().map(|measurement| measurement.name).filter(|name| has(name)).collect()
    }

    /// Returns true if neither a measurement nor a call of a load failed.
    pub(in crate::bench) fn is_whole(&self) -> bool {
        let mut loads = self.rounds.values().flatten().flat_map(|measured| &measured.loads);
        self.failures.is_empty() && loads.all(|(_, load)| load.failures == 0)
    }

    /// Returns all figures and histograms as JSON.
    pub(in crate::bench) fn json(&self) -> Value {
        let rounds = self.rounds.iter().flat_map(|((measurement, subject), rounds)| {
            (1_usize..).zip(rounds).map(move |(number, measured)| {
                let loads = measured.loads.iter();
                let loads: BTreeMap<&str, Value> =
                    loads.map(|(name, load)| (name.as_str(), load.json())).collect();
                json!({
                    "measurement": measurement, "system": subject.name(), "round": number,
                    "figures": measured.figures, "loads": loads,
                })
            })
        });
        json!({"rounds": rounds.collect::<Vec<_>>(), "failures": self.failures})
    }
}

/// Median; the lower one of two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_of_its_rounds() {
        let mut results = Results::default();
        for value in [5.0, 1.0, 3.0] {
            let mut measured = Measured::default();
            measured.add("per_s", value);
            results.add("burst", Subject::Etcd, measured);
        }
        assert_eq!(results.median("burst", Subject::Etcd, "per_s"), Some(3.0));
        assert_eq!(results.median("burst", Subject::Ipamd, "per_s"), None);
        assert_eq!(results.median("burst", Subject::Etcd, "p50_ms"), None);
        assert_eq!(median(vec![1.0, 2.0]), Some(1.0));
    }

    #[test]
    fn a_failed_call_or_measurement_makes_results_incomplete() {
        let of = |failures| {
            let mut results = Results::default();
            results.add("burst", Subject::Etcd, Measured::of(Load { failures, ..Load::default() }));
            results
        };
        assert!(of(0).is_whole() && !of(1).is_whole());
        let results = Results { failures: vec!["add: no agent".to_owned()], ..of(0) };
        assert!(!results.is_whole());
    }
}
