//! Histogram of latencies in log-linear buckets, with an error below 1 %.

use std::time::Duration;

/// Number of buckets per power of two.
const BUCKETS_PER_POWER: u64 = 128;
/// One million: shares of a histogram are expressed in millionths.
const MILLION: u64 = 1_000_000;

/// Counts of latencies, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(in crate::bench) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Histogram {
    /// Adds one latency.
    pub(in crate::bench) fn add(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket(ns);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all latencies of another histogram.
    pub(in crate::bench) fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of latencies.
    pub(in crate::bench) fn count(&self) -> u64 {
        self.count
    }

    /// Largest latency.
    pub(in crate::bench) fn max(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }

    /// Latency that a share of all latencies, in millionths, does not exceed; zero without latencies.
    pub(in crate::bench) fn quantile(&self, millionths: u64) -> Duration {
        let rank = self.count.saturating_mul(millionths).div_ceil(MILLION).max(1);
        let mut below = 0;
        for (bucket, count) in (0_u64..).zip(&self.counts) {
            below += count;
            if below >= rank {
                return Duration::from_nanos(upper_ns(bucket).min(self.max_ns));
            }
        }
        Duration::ZERO
    }

    /// Median in milliseconds.
    pub(in crate::bench) fn p50_ms(&self) -> f64 {
        self.quantile(MILLION / 2).as_secs_f64() * 1000.0
    }

    /// 99th percentile in milliseconds.
    pub(in crate::bench) fn p99_ms(&self) -> f64 {
        self.quantile(MILLION / 100 * 99).as_secs_f64() * 1000.0
    }

    /// Buckets that are not empty: upper end in nanoseconds and count.
    pub(in crate::bench) fn buckets(&self) -> Vec<(u64, u64)> {
        let all = (0_u64..).zip(&self.counts).filter(|(_, count)| **count > 0);
        all.map(|(bucket, count)| (upper_ns(bucket), *count)).collect()
    }
}

/// Bucket of a value. Values below twice [`BUCKETS_PER_POWER`] have one each.
fn bucket(ns: u64) -> usize {
    let shift = shift(ns);
    usize::try_from(u64::from(shift) * BUCKETS_PER_POWER + (ns >> shift)).unwrap_or(usize::MAX)
}

fn shift(ns: u64) -> u32 {
    (u64::BITS - ns.leading_zeros()).saturating_sub(BUCKETS_PER_POWER.ilog2() + 1)
}

/// Largest value of a bucket.
fn upper_ns(bucket: u64) -> u64 {
    let shift = (bucket / BUCKETS_PER_POWER).saturating_sub(1);
    let within = bucket - shift * BUCKETS_PER_POWER;
    u64::try_from(((u128::from(within) + 1) << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_lies_in_its_bucket_with_an_error_below_one_percent() {
        let mut values: Vec<u64> = (0..64).flat_map(|power| [1_u64 << power, (1 << power) + 1]).collect();
        values.extend([0, 255, 256, 257, 999_999_937, u64::MAX]);
        for ns in values {
            let at = u64::try_from(bucket(ns)).unwrap();
            let upper = upper_ns(at);
            assert!(upper >= ns && upper - ns <= ns / 100, "{ns}: {upper}");
            assert!(at == 0 || upper_ns(at - 1) < ns, "{ns} belongs to an earlier bucket");
        }
    }

    #[test]
    fn quantiles_and_merges_count_all_latencies() {
        let of = |range: std::ops::RangeInclusive<u64>| {
            let mut histogram = Histogram::default();
            range.for_each(|us| histogram.add(Duration::from_micros(us)));
            histogram
        };
        let mut all = of(1..=500);
        all.merge(&of(501..=1000));
        let near = |millionths: u64, us: f64| {
            let found = all.quantile(millionths).as_secs_f64() * 1e6;
            assert!((found - us).abs() <= us / 100.0, "{millionths}: {found}");
        };
        near(500_000, 500.0);
        near(990_000, 990.0);
        near(1, 1.0);
        assert_eq!(all.quantile(MILLION), Duration::from_millis(1));
        assert_eq!((all.count(), all.max()), (1000, Duration::from_millis(1)));
        assert_eq!(all.buckets().iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert_eq!(Histogram::default().quantile(500_000), Duration::ZERO);
    }
}
