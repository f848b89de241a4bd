//! Latency of successful operations by function, with and without an active fault.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checker::intervals::{FaultTimes, Interval};
use crate::history::{Function, Type};

/// Quantiles of one function, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Function.
    pub function: Function,
    /// True for operations that overlap a fault.
    pub under_faults: bool,
    /// Number of successful operations.
    pub count: u64,
    /// Median.
    pub p50_us: u64,
    /// Nine of ten are faster.
    pub p90_us: u64,
    /// 99 of 100 are faster.
    pub p99_us: u64,
    /// Slowest.
    pub max_us: u64,
}

/// Smallest value of a sorted list that at least a share of the list, in percent, does not exceed.
pub(super) fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Duration of a successful operation.
pub(super) fn duration_us(interval: &Interval<'_>) -> Option<u64> {
    let is_ok = interval.kind() == Type::Ok;
    is_ok.then(|| interval.end_ns().saturating_sub(interval.begin_ns()) / 1000)
}

/// Returns the quantiles of each function.
pub(super) fn latencies(operations: &[Interval<'_>], times: &FaultTimes) -> Vec<Latency> {
    let mut all: BTreeMap<(Function, bool), Vec<u64>> = BTreeMap::new();
    for interval in operations.iter().filter(|interval| interval.begin.f != Function::Farm) {
        if let Some(duration_us) = duration_us(interval) {
            let under_faults = times.overlap(interval.begin_ns(), interval.end_ns());
            all.entry((interval.begin.f, under_faults)).or_default().push(duration_us);
        }
    }
    let row = |((function, under_faults), mut times_us): ((Function, bool), Vec<u64>)| {
        times_us.sort_unstable();
        Latency {
            function,
            under_faults,
            count: times_us.len() as u64,
            p50_us: quantile(&times_us, 50),
            p90_us: quantile(&times_us, 90),
            p99_us: quantile(&times_us, 99),
            max_us: times_us.last().copied().unwrap_or_default(),
        }
    };
    all.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_list() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!((quantile(&sorted, 50), quantile(&sorted, 99), quantile(&sorted, 100)), (50, 99, 100));
        assert_eq!((quantile(&[1, 2], 50), quantile(&[1, 2], 51), quantile(&[1, 2], 99)), (1, 2, 2));
        assert_eq!((quantile(&[7], 50), quantile(&[], 99)), (7, 0));
    }
}
