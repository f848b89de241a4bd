//! Pauses that are recommended to refused requests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ipam_api::limits::{RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN};

use crate::durations::as_ms;

/// Fractional part of the golden ratio in 64 bits: its multiples fill an interval evenly, however many there
/// are.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads the repetitions of requests that are refused together, without randomness.
#[derive(Debug, Default)]
pub struct RetryAfter(AtomicU64);

impl RetryAfter {
    /// Pause in milliseconds: from `base` up to twice as long, and never outside the limits.
    pub fn spread_ms(&self, base: Duration) -> u64 {
        let base_ms = as_ms(base).clamp(RETRY_AFTER_MS_MIN, RETRY_AFTER_MS_MAX / 2);
        let point = self.0.fetch_add(GOLDEN, Relaxed);
        let part = (u128::from(point) * u128::from(base_ms)) >> 64;
        base_ms + u64::try_from(part).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_fill_the_interval_evenly_and_stay_within_the_limits() {
        let retry_after = RetryAfter::default();
        let mut pauses: Vec<u64> =
            (0..100).map(|_| retry_after.spread_ms(Duration::from_millis(1_000))).collect();
        pauses.sort_unstable();
        assert!(pauses.iter().all(|pause| (1_000..2_000).contains(pause)), "{pauses:?}");
        let widest = pauses.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest <= 20, "100 pauses leave gaps of {widest} ms");
        assert!(retry_after.spread_ms(Duration::ZERO) >= RETRY_AFTER_MS_MIN);
        assert!(retry_after.spread_ms(Duration::MAX) <= RETRY_AFTER_MS_MAX);
    }
}
