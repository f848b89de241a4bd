//! Counters of the store.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use crate::durations::{Durations, as_ms};

/// Number of recent flushes for the median, which a single slow flush doesn't influence.
const RECENT: usize = 9;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct StoreCounters {
    /// Time from handing a group of log entries to the disk until they are on disk.
    pub(crate) fsync: Durations,
    /// Time to apply the entries between two publications of the state.
    pub(crate) apply: Durations,
    /// Starts at which the rows were set aside and rebuilt.
    pub(crate) rows_rebuilt: AtomicU64,
    /// Snapshots that this member made.
    pub(crate) snapshots_built: AtomicU64,
    /// Snapshots that were due and could not be built from the state.
    pub(crate) snapshots_failed: AtomicU64,
    /// The present write of the log.
    pub(crate) flush: Flush,
}

/// Flush of the log in progress. There is never more than one.
#[derive(Debug)]
pub(crate) struct Flush {
    start: Instant,
    /// Start in milliseconds since the process start, plus one; 0 while there is none.
    begun_ms: AtomicU64,
    /// The lengths of the newest flushes, in milliseconds, and the number of all.
    recent_ms: [AtomicU64; RECENT],
    count: AtomicUsize,
    /// Milliseconds that a test adds to each flush.
    #[cfg(feature = "testing")]
    pub(crate) delay_ms: AtomicU64,
}

impl Default for Flush {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            begun_ms: AtomicU64::new(0),
            recent_ms: Default::default(),
            count: AtomicUsize::new(0),
            #[cfg(feature = "testing")]
            delay_ms: AtomicU64::new(0),
        }
    }
}

impl Flush {
    /// Records the start of a write.
    pub(in crate::store) fn begin(&self) {
        self.begun_ms.store(self.now_ms().saturating_add(1), Relaxed);
    }

    /// Records the end of a write, successful or not.
    pub(in crate::store) fn end(&self) {
        self.begun_ms.store(0, Relaxed);
    }

    /// Returns how long the current write has taken; zero without one.
    pub(crate) fn outstanding(&self) -> Duration {
        match self.begun_ms.load(Relaxed) {
            0 => Duration::ZERO,
            begun_ms => Duration::from_millis(self.now_ms().saturating_sub(begun_ms.saturating_sub(1))),
        }
    }

    /// Records the duration of a completed write.
    pub(in crate::store) fn took(&self, took: Duration) {
        let at = self.count.fetch_add(1, Relaxed);
        if let Some(place) = self.recent_ms.get(at % RECENT) {
            place.store(as_ms(took), Relaxed);
        }
    }

    /// Waits like a slow disk.
    #[cfg(feature = "testing")]
    pub(in crate::store) fn linger(&self) {
        crate::threads::pause(Duration::from_millis(self.delay_ms.load(Relaxed)));
    }

    /// The median length of the newest flushes.
    pub(crate) fn median_ms(&self) -> u64 {
        let known = self.count.load(Relaxed).min(RECENT);
        let mut recent: Vec<u64> = self.recent_ms.iter().take(known).map(|ms| ms.load(Relaxed)).collect();
        recent.sort_unstable();
        recent.get(known / 2).copied().unwrap_or_default()
    }

    fn now_ms(&self) -> u64 {
        as_ms(self.start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_flush_is_the_median_of_the_newest() {
        let flush = Flush::default();
        assert_eq!(flush.median_ms(), 0);
        let took = |all: &[u64]| {
            all.iter().for_each(|ms| flush.took(Duration::from_millis(*ms)));
            flush.median_ms()
        };
        assert_eq!(took(&[200]), 200);
        assert_eq!(took(&[1, 1, 1, 900, 1]), 1, "one slow flush is no slow disk");
        assert_eq!(took(&[100; RECENT]), 100);
        assert_eq!(took(&[1; RECENT / 2]), 100);
        assert_eq!(took(&[1]), 1);
    }
}
