//! Limit of bytes per second, which protects other work on the same disk and network.

use std::time::Duration;

use tokio::time::Instant;

/// The rate limit of one piece of work.
#[derive(Debug)]
pub(crate) struct RateLimit {
    bytes_per_second: u64,
    begun: Instant,
    bytes: u64,
}

impl RateLimit {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), begun: Instant::now(), bytes: 0 }
    }

    /// Counts bytes; returns the pause before the next ones.
    pub(crate) fn rest(&mut self, bytes: u64) -> Duration {
        let now = Instant::now();
        self.rest_at(now, bytes)
    }

    fn rest_at(&mut self, now: Instant, bytes: u64) -> Duration {
        self.bytes = self.bytes.saturating_add(bytes);
        let took = now.saturating_duration_since(self.begun);
        let nanoseconds = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let due = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        due.checked_sub(took).unwrap_or_else(|| {
            // Lost time isn't made up for: the limit holds after a stall, too.
            (self.begun, self.bytes) = (now, 0);
            Duration::ZERO
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haste_is_held_back_and_a_stall_is_not_made_up_for() {
        let mut rate_limit = RateLimit::new(1000);
        let begun = rate_limit.begun;
        let at = |ms: u64| begun + Duration::from_millis(ms);
        assert_eq!(rate_limit.rest_at(at(0), 100), Duration::from_millis(100));
        assert_eq!(rate_limit.rest_at(at(100), 100), Duration::from_millis(100));
        // A second too late: what follows is no quicker than ever.
        assert_eq!(rate_limit.rest_at(at(1200), 100), Duration::ZERO);
        assert_eq!(rate_limit.rest_at(at(1200), 500), Duration::from_millis(500));
    }
}
