//! Durations counted in buckets: a few atomic additions per measurement, and no lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds: 100 µs to 10 s. One more bucket counts longer durations.
pub const BUCKETS_US: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000,
];
const BUCKETS: usize = BUCKETS_US.len() + 1;

/// Converts a duration to whole milliseconds, rounded down.
pub(crate) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A histogram of durations.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

/// Counts of durations since the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// Counts by the bounds of [`BUCKETS_US`], the last for longer ones; not cumulative.
    pub buckets: [u64; BUCKETS],
    /// Sum of all durations, in nanoseconds.
    pub nanoseconds: u64,
}

impl Durations {
    /// Records one duration.
    pub(crate) fn observe(&self, took: Duration) {
        let bound = BUCKETS_US.partition_point(|bound| Duration::from_micros(*bound) < took);
        if let Some(bucket) = self.buckets.get(bound) {
            bucket.fetch_add(1, Relaxed);
        }
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns the current counts.
    pub(crate) fn read(&self) -> DurationCounts {
        DurationCounts {
            buckets: self.buckets.each_ref().map(|bucket| bucket.load(Relaxed)),
            nanoseconds: self.nanoseconds.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let durations = Durations::default();
        for micros in [0, 100, 101, 10_000_000, 10_000_001] {
            durations.observe(Duration::from_micros(micros));
        }
        let counts = durations.read();
        assert_eq!((counts.buckets[0], counts.buckets[1]), (2, 1));
        assert_eq!((counts.buckets[15], counts.buckets[16]), (1, 1));
        assert_eq!(counts.nanoseconds, 20_000_202_000);
    }
}
