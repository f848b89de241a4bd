//! Metrics whose values are kept elsewhere, and are read at each scrape.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ipam_machine::State;
use ipam_raft::durations::{BUCKETS_US, DurationCounts};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Histogram of durations that the raft crate has counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Seconds(Arc<Mutex<DurationCounts>>);

impl Seconds {
    pub(super) fn set(&self, counts: DurationCounts) {
        *lock(&self.0) = counts;
    }
}

impl EncodeMetric for Seconds {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let counts = *lock(&self.0);
        let bounds = BUCKETS_US.iter().map(|bound| std::time::Duration::from_micros(*bound).as_secs_f64());
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts.buckets).collect();
        let sum = std::time::Duration::from_nanos(counts.nanoseconds).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, counts.buckets.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

pub(super) const POOLS_NAME: &str = "pool_addresses";
pub(super) const POOLS_HELP: &str = "Addresses of a pool by state";
pub(super) const POOLS_LABELS: &[&str] = &["network", "pool", "state"];

/// Counts of each pool, written directly from the state: no series is kept for 100,000 pools.
#[derive(Clone, Default)]
pub(super) struct Pools(Arc<Mutex<Option<State>>>);

impl Pools {
    /// Sets the state to read from. Nothing is written without a state.
    pub(super) fn set(&self, state: Option<State>) {
        *lock(&self.0) = state;
    }
}

impl fmt::Debug for Pools {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pools").finish_non_exhaustive()
    }
}

impl Collector for Pools {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(state) = lock(&self.0).clone() else { return Ok(()) };
        let mut family = encoder.encode_descriptor(POOLS_NAME, POOLS_HELP, None, MetricType::Gauge)?;
        for (id, pool) in state.pools.iter() {
            let Some(counts) = state.space(id).map(|space| space.counts()) else { continue };
            let Some(subnet) = state.subnets.get(pool.subnet) else { continue };
            for (word, count) in [
                ("allocated", counts.allocated),
                ("cooling", counts.cooling),
                ("quarantined", counts.quarantined),
                ("reserved", counts.reserved),
                ("excluded", counts.excluded),
                ("free", counts.free),
            ] {
                let labels = [
                    ("network", subnet.spec.network.as_str()),
                    ("pool", pool.spec.name.as_str()),
                    ("state", word),
                ];
                family.encode_family(&labels)?.encode_gauge(&u64::try_from(count).unwrap_or(u64::MAX))?;
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
