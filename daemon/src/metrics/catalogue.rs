//! The catalogue of metrics: each with its name, kind and labels, and the registry that writes them.

use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};

const PREFIX: &str = "ipamd";

/// One metric of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its name, as in queries; of a histogram, what `_bucket`, `_sum` and `_count` are put behind.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

pub(super) struct Catalogue {
    pub(super) registry: Registry,
    pub(super) described: Vec<Described>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { registry: Registry::with_prefix(PREFIX), described: Vec::new() }
    }
}

impl Catalogue {
    pub(super) fn add(
        &mut self,
        name: &str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: impl Metric,
    ) {
        let kind = match metric.metric_type() {
            MetricType::Counter => "counter",
            MetricType::Histogram => "histogram",
            _ => "gauge",
        };
        self.describe(name, kind, labels, help);
        self.registry.register(name, help, metric);
    }

    pub(super) fn describe(
        &mut self,
        name: &str,
        kind: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) {
        let suffix = if kind == "counter" { "_total" } else { "" };
        self.described.push(Described { name: format!("{PREFIX}_{name}{suffix}"), kind, labels, help });
    }
}
