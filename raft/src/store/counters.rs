//! What the store counts about itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::durations::Durations;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct StoreCounters {
    /// Time from handing a group to the disk until it is on it.
    pub(crate) fsync: Durations,
    /// Time to apply the entries that come under one lock.
    pub(crate) apply: Durations,
    /// How often rows were put aside and made afresh.
    pub(crate) rows_rebuilt: AtomicU64,
    /// Snapshots that this member made.
    pub(crate) snapshots_built: AtomicU64,
    /// How often a snapshot was due and couldn't be made of the state.
    pub(crate) snapshots_failed: AtomicU64,
    /// What the log writes at the moment.
    pub(crate) flush: Flush,
}

/// A flush of the log that may be under way. There is never more than one.
#[derive(Debug)]
pub(crate) struct Flush {
    start: Instant,
    /// When it began, in milliseconds since the start, and one more; 0 while there is none.
    begun_ms: AtomicU64,
}

impl Default for Flush {
    fn default() -> Self {
        Self { start: Instant::now(), begun_ms: AtomicU64::new(0) }
    }
}

impl Flush {
    /// The disk is given something.
    pub(super) fn begin(&self) {
        self.begun_ms.store(self.now_ms().saturating_add(1), Relaxed);
    }

    /// It has it, or has refused it.
    pub(super) fn end(&self) {
        self.begun_ms.store(0, Relaxed);
    }

    /// For how long the disk has owed an answer.
    pub(crate) fn outstanding(&self) -> Duration {
        match self.begun_ms.load(Relaxed) {
            0 => Duration::ZERO,
            begun_ms => Duration::from_millis(self.now_ms().saturating_sub(begun_ms.saturating_sub(1))),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
