//! Verdict of a checker.

use serde::{Deserialize, Serialize};

/// Result of one checker on one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Violations, at most [`Verdict::ANOMALIES_MAX`].
    pub anomalies: Vec<Anomaly>,
    /// Number of all violations.
    pub violations: u64,
    /// Number of facts that were verified: a checker with 0 has seen nothing.
    pub checked: u64,
    /// Figures for the report, as name and value.
    pub figures: Vec<(String, String)>,
    /// Reasons for which the run is too weak to prove anything: such a run is invalid, and has not failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<String>,
}

/// One violation with the few operations that demonstrate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Description.
    pub message: String,
    /// Indexes of operations in the history.
    pub operations: Vec<u64>,
    /// Events of the journal, as `REVISION.NUMBER`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

impl Verdict {
    /// Maximum number of anomalies in a verdict.
    pub const ANOMALIES_MAX: usize = 20;

    /// Adds a violation.
    pub fn violated(&mut self, message: impl Into<String>, operations: impl IntoIterator<Item = u64>) {
        self.add(Anomaly {
            message: message.into(),
            operations: operations.into_iter().collect(),
            events: Vec::new(),
        });
    }

    /// Adds a violation with events.
    pub fn add(&mut self, anomaly: Anomaly) {
        self.violations += 1;
        if self.anomalies.len() < Self::ANOMALIES_MAX {
            self.anomalies.push(anomaly);
        }
    }

    /// Adds a reason for which the run is too weak.
    pub fn shortfall(&mut self, reason: impl Into<String>) {
        self.shortfalls.push(reason.into());
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: impl Into<String>, value: impl ToString) {
        self.figures.push((name.into(), value.to_string()));
    }

    /// Returns true without violations.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violations == 0
    }
}
