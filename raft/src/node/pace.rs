//! Pace at which a queue drains, and the waits that follow from it.

use std::time::Duration;

use ipam_api::limits::PROPOSAL_WAIT_MS_MAX;
use tokio::time::Instant;

/// Longest wait in the queue for which a proposal is accepted.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(PROPOSAL_WAIT_MS_MAX);
/// Factor of the usual time between two entries after which the queue counts as stalled. A permanently slow
/// disk still works.
const STALLED_ENTRIES: u32 = 4;

/// Pace of a queue.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Instant of the last take, or of the first arrival after it; none while no proposal waits.
    since: Option<Instant>,
    /// True if the last entry left proposals behind: then the time until the next entry measures the pace.
    backlog: bool,
    /// Usual wait of the longest waiting proposal between two entries.
    entry: Duration,
    /// Usual time for a weight of 1. It falls fast without a backlog, since nothing is measured then.
    weight: Duration,
}

impl Pace {
    /// Notes that a proposal came into the queue.
    pub(super) fn note_arrival(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Notes that the last proposal of the queue gave up.
    pub(super) fn note_empty(&mut self) {
        (self.since, self.backlog) = (None, false);
    }

    /// Notes that proposals of this weight were taken, and whether others stay behind.
    pub(super) fn note_taken(&mut self, weight: usize, backlog: bool, now: Instant) {
        let took = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.entry = (self.entry * 3 + took) / 4;
        self.weight = match u32::try_from(weight) {
            Ok(weight) if self.backlog && weight > 0 => (self.weight * 3 + took / weight) / 4,
            _ => self.weight / 2,
        };
        self.backlog = backlog;
        self.since = backlog.then_some(now);
    }

    /// Estimates the wait of a proposal. `ahead` is the weight before it; the share of its principal spreads
    /// the principal's proposals over `entries` entries.
    pub(super) fn wait(&self, ahead: usize, entries: u32, now: Instant) -> Duration {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        let by_rate = self.weight.saturating_mul(ahead);
        // Without a backlog no entry is full.
        let by_share = if self.backlog { self.entry.saturating_mul(entries) } else { Duration::ZERO };
        by_rate.max(by_share).max(self.stalled(now).unwrap_or_default())
    }

    /// Time for which the queue has not moved, if that is too long.
    fn stalled(&self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.since?);
        Some(waited).filter(|waited| *waited > WAIT_MAX.max(self.entry * STALLED_ENTRIES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_wait_follows_the_drain_rate_and_nothing_is_expected_without_a_backlog() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        assert_eq!(pace.wait(1_000_000, 0, begun), Duration::ZERO, "nothing is known");
        pace.note_arrival(begun);
        let mut now = begun;
        for _ in 0..40 {
            now += 100 * MS;
            pace.note_taken(100, true, now);
        }
        let wait = pace.wait(3_000, 0, now);
        assert!((2_800 * MS..=3_000 * MS).contains(&wait), "1 ms each: {wait:?}");
        for _ in 0..40 {
            pace.note_taken(1, false, now);
        }
        assert_eq!(pace.wait(3_000, 0, now + 60_000 * MS), Duration::ZERO, "it is idle");
    }

    #[test]
    fn a_queue_that_does_not_move_is_stalled_and_a_slow_one_is_not() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        pace.note_arrival(begun);
        assert_eq!(pace.wait(1, 0, begun + WAIT_MAX), Duration::ZERO);
        let stalled = WAIT_MAX + MS;
        assert_eq!(pace.wait(1, 0, begun + stalled), stalled);
        // If every entry takes that long, this is the pace of the queue and no stall.
        let mut now = begun;
        for _ in 0..20 {
            now += 2 * WAIT_MAX;
            pace.note_taken(1_000, false, now);
            pace.note_arrival(now);
        }
        assert_eq!(pace.wait(1, 0, now + 2 * WAIT_MAX), Duration::ZERO);
        pace.note_empty();
        assert_eq!(pace.wait(1, 0, now + 100 * WAIT_MAX), Duration::ZERO);
    }
}
