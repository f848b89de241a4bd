//! Series: operations of a run in buckets of time.

use crate::checker::intervals::Interval;
use crate::history::{Function, Type};
use crate::report::latency::{duration_us, quantile};

/// Maximum number of buckets of a run.
const BUCKETS_MAX: u64 = 240;
const SECOND_NS: u64 = 1_000_000_000;

/// Operations of one bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Bucket {
    /// Ends by kind: ok, fail, info.
    pub(super) ends: [u64; 3],
    /// Median latency; none without a successful operation.
    pub(super) p50_us: Option<u64>,
    /// Latency that 99 of 100 are below.
    pub(super) p99_us: Option<u64>,
}

/// Operations over time.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// Width of a bucket, whole seconds.
    pub(super) width_ns: u64,
    /// Buckets without gaps, from the begin of the run.
    pub(super) buckets: Vec<Bucket>,
}

/// Returns true for functions that wait on purpose, so that their duration is no latency.
fn waits(f: Function) -> bool {
    matches!(f, Function::Events | Function::Claim | Function::Farm)
}

impl Series {
    /// Operations of a run that took this time, by their ends.
    pub(super) fn of(operations: &[Interval<'_>], end_ns: u64) -> Self {
        let seconds = end_ns.div_ceil(SECOND_NS).max(1);
        let width_ns = seconds.div_ceil(BUCKETS_MAX) * SECOND_NS;
        let count = usize::try_from(end_ns / width_ns).unwrap_or_default() + 1;
        let mut buckets = vec![Bucket::default(); count];
        let mut times_us: Vec<Vec<u64>> = vec![Vec::new(); count];
        for interval in operations.iter().filter(|interval| interval.begin.f != Function::Farm) {
            // An operation without an end counts at its begin.
            let time_ns = interval.end.unwrap_or(interval.begin).time_ns;
            let at = usize::try_from(time_ns / width_ns).unwrap_or(usize::MAX);
            let Some((bucket, times_us)) = buckets.get_mut(at).zip(times_us.get_mut(at)) else { continue };
            let [ok, fail, info] = &mut bucket.ends;
            match interval.kind() {
                Type::Ok => *ok += 1,
                Type::Fail => *fail += 1,
                Type::Info | Type::Invoke => *info += 1,
            }
            times_us.extend(duration_us(interval).filter(|_| !waits(interval.begin.f)));
        }
        for (bucket, mut times_us) in buckets.iter_mut().zip(times_us) {
            times_us.sort_unstable();
            if !times_us.is_empty() {
                bucket.p50_us = Some(quantile(&times_us, 50));
                bucket.p99_us = Some(quantile(&times_us, 99));
            }
        }
        Self { width_ns, buckets }
    }

    /// Seconds of a bucket.
    pub(super) fn width_s(&self) -> u64 {
        self.width_ns / SECOND_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::fixtures::Script;
    use crate::checker::intervals::operations;
    use crate::history::Value;

    #[test]
    fn operations_are_counted_in_the_second_of_their_end() {
        let mut script = Script::default();
        script.at(999).ok(1, Function::Allocate, Value::default(), Value::default());
        script.at(1500).begin(2, Function::Read, Value::default());
        let history = script.history();
        let series = Series::of(&operations(&history), 1_500_000_000);
        assert_eq!((series.width_s(), series.buckets.len()), (1, 2));
        assert_eq!(series.buckets[0].ends, [0, 0, 0]);
        assert_eq!(series.buckets[1].ends, [1, 0, 1]);
        assert_eq!(series.buckets[1].p50_us, Some(1000));
    }

    #[test]
    fn long_runs_have_wide_buckets() {
        let series = Series::of(&[], 3600 * SECOND_NS);
        assert_eq!(series.width_s(), 15);
        assert!(series.buckets.len() <= 241);
    }
}
