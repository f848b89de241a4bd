//! Gauges of whole numbers, and counters that follow a value kept elsewhere.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// Gauge of a whole number that isn't negative.
pub(super) type Number = Gauge<u64, AtomicU64>;

/// Brings a counter up to a value that is kept elsewhere.
pub(super) fn raise(counter: &Counter, value: u64) {
    counter.inc_by(value.saturating_sub(counter.get()));
}
