//! Outcome of a load.

use std::time::Duration;

use serde_json::{Value, json};

use super::histogram::Histogram;
use super::meter::Usage;

/// Durations of a load.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Times {
    /// Load before the measurement.
    pub(in crate::bench) warm_up: Duration,
    /// Load that is measured.
    pub(in crate::bench) measured: Duration,
}

/// Outcome of a load, or of several after a merge.
#[derive(Debug, Clone, Default)]
pub(in crate::bench) struct Load {
    pub(in crate::bench) latency: Histogram,
    pub(in crate::bench) operations: u64,
    /// Calls that the system refused because of overload.
    pub(in crate::bench) refusals: u64,
    pub(in crate::bench) failures: u64,
    pub(in crate::bench) first_failure: Option<String>,
    pub(in crate::bench) elapsed: Duration,
    pub(in crate::bench) usage: Usage,
}

impl Load {
    /// Operations per second.
    pub(in crate::bench) fn throughput(&self) -> f64 {
        float(self.operations) / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// CPU time of all processes of the system for one operation, in microseconds.
    pub(in crate::bench) fn cpu_us(&self) -> f64 {
        self.usage.system_cpu().as_secs_f64() * 1e6 / float(self.operations.max(1))
    }

    /// Adds another load of the same kind.
    pub(in crate::bench) fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.operations += other.operations;
        self.refusals += other.refusals;
        self.failures += other.failures;
        self.first_failure = self.first_failure.take().or_else(|| other.first_failure.clone());
        self.elapsed += other.elapsed;
        self.usage.merge(&other.usage);
    }

    /// Formats the outcome as one line of text.
    pub(in crate::bench) fn shown(&self) -> String {
        let mut text = format!(
            "{:>9.0}/s  p50 {:>7.2} ms  p99 {:>7.2} ms  max {:>7.1} ms  idle {:>2} %",
            self.throughput(),
            self.latency.p50_ms(),
            self.latency.p99_ms(),
            self.latency.max().as_secs_f64() * 1000.0,
            self.usage.idle_percent(),
        );
        for used in &self.usage.processes {
            let us = used.cpu.as_secs_f64() * 1e6 / float(self.operations.max(1));
            text.push_str(&format!("  {} {us:.0} µs", used.name));
            if used.written_bytes > 0 {
                text.push_str(&format!(" {} B", used.written_bytes / self.operations.max(1)));
            }
        }
        if self.refusals > 0 {
            text.push_str(&format!("  {} refused", self.refusals));
        }
        if let Some(failure) = &self.first_failure {
            text.push_str(&format!("  {} FAILED: {failure}", self.failures));
        }
        text
    }

    /// Returns all figures and the histogram as JSON.
    pub(in crate::bench) fn json(&self) -> Value {
        let processes = self.usage.processes.iter().map(|used| {
            json!({
                "name": used.name,
                "cpu_us_per_operation": used.cpu.as_secs_f64() * 1e6 / float(self.operations.max(1)),
                "written_bytes": used.written_bytes,
            })
        });
        json!({
            "operations": self.operations, "refusals": self.refusals, "failures": self.failures,
            "first_failure": self.first_failure, "elapsed_s": self.elapsed.as_secs_f64(),
            "operations_per_s": self.throughput(), "p50_ms": self.latency.p50_ms(),
            "p99_ms": self.latency.p99_ms(), "max_ms": self.latency.max().as_secs_f64() * 1000.0,
            "idle_percent": self.usage.idle_percent(), "processes": processes.collect::<Vec<_>>(),
            "histogram_upper_ns_and_count": self.latency.buckets(),
        })
    }
}

/// Converts a number to a float for a ratio.
#[expect(clippy::cast_precision_loss, reason = "ratios of counts far below 2^53")]
fn float(number: u64) -> f64 {
    number as f64
}
