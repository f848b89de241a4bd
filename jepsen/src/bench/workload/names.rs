//! Names that no other run has used.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of the next name. The first one is random, so that runs on one cluster do not meet.
pub(in crate::bench) fn next_number() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(uuid::Uuid::new_v4().as_u64_pair().0));
    NEXT.fetch_add(1, Relaxed)
}
