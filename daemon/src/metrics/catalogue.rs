//! The catalogue of metrics: each with its name, kind and labels, and the registry that writes them.

use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

use super::labels::Labels;
use super::shown::{POOLS_HELP, POOLS_LABELS, POOLS_NAME, Pools};

const PREFIX: &str = "ipamd";

/// One metric of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Name as in queries; for a histogram without `_bucket`, `_sum` and `_count`.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// Help text of the metric.
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
    /// Registers a metric without labels, at zero.
    pub(super) fn plain<M: Metric + Default + Clone>(&mut self, name: &str, help: &'static str) -> M {
        self.add(name, &[], help, M::default())
    }

    /// Registers a metric with labels, without series at first.
    pub(super) fn by<L: Labels, M>(&mut self, name: &str, help: &'static str) -> Family<L, M>
    where
        Family<L, M>: Metric + Default,
    {
        self.add(name, L::NAMES, help, Family::default())
    }

    pub(super) fn add<M: Metric + Clone>(
        &mut self,
        name: &str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: M,
    ) -> M {
        let kind = match metric.metric_type() {
            MetricType::Counter => "counter",
            MetricType::Histogram => "histogram",
            _ => "gauge",
        };
        self.describe(name, kind, labels, help);
        self.registry.register(name, help, metric.clone());
        metric
    }

    /// Registers the counts of each pool, without a state to read them from at first.
    pub(super) fn pools(&mut self) -> Pools {
        let pools = Pools::default();
        self.describe(POOLS_NAME, "gauge", POOLS_LABELS, POOLS_HELP);
        self.registry.register_collector(Box::new(pools.clone()));
        pools
    }

    fn describe(
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
