//! Reasons for which an open store stops to serve.

use std::panic::resume_unwind;

use ipam_machine::Broken;

/// The reason for which a store stops to serve: the process must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreFailure {
    /// Files can't be written or read any more, or a thread of the store has panicked.
    Disk(String),
    /// The state breaks an invariant, and must not be read again.
    Broken(Broken),
}

/// Continues unwinding for a broken invariant that another thread has found.
pub(in crate::store) fn unwind<T>(broken: Broken) -> T {
    resume_unwind(Box::new(broken))
}

/// Logs a broken invariant so that no reader of the log misses it.
pub(in crate::store) fn report(broken: &Broken) {
    let Broken { invariant, detail } = broken;
    tracing::error!(invariant, detail, "INVARIANT BROKEN: the state can't be right; this member stops");
}
