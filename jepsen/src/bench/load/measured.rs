//! Figures of one measurement of one system.

use std::collections::BTreeMap;

use super::outcome::Load;

/// Figures by name, and the loads that they come from.
#[derive(Debug, Clone, Default)]
pub(in crate::bench) struct Measured {
    pub(in crate::bench) figures: BTreeMap<String, f64>,
    pub(in crate::bench) loads: Vec<(String, Load)>,
}

impl Measured {
    /// Figures of one load: throughput, quantiles, duration, failures and CPU time.
    pub(in crate::bench) fn of(load: Load) -> Self {
        let mut measured = Self::default();
        measured.add_load("", load);
        measured
    }

    /// Adds a figure.
    pub(in crate::bench) fn add(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }

    /// Adds the figures of a load; their names begin with its name, unless that is empty.
    pub(in crate::bench) fn add_load(&mut self, name: &str, load: Load) {
        #[expect(clippy::cast_precision_loss, reason = "counts of failures are small")]
        let failures = load.failures as f64;
        for (figure, value) in [
            ("per_s", load.throughput()),
            ("p50_ms", load.latency.p50_ms()),
            ("p99_ms", load.latency.p99_ms()),
            ("elapsed_s", load.elapsed.as_secs_f64()),
            ("failures", failures),
            ("cpu_us", load.cpu_us()),
        ] {
            let separator = if name.is_empty() { "" } else { "-" };
            self.add(&format!("{name}{separator}{figure}"), value);
        }
        self.loads.push((name.to_owned(), load));
    }

    /// Returns a figure by its name, if it was measured.
    pub(in crate::bench) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }
}
