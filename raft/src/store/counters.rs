//! What the store counts about itself.

use std::sync::atomic::AtomicU64;

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
}
