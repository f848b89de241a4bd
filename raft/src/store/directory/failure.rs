//! Reasons why an open store stops serving.

use std::panic::resume_unwind;

use ipam_machine::Broken;
use tokio::sync::watch;

/// Reason why a store stops serving: the process must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreFailure {
    /// Files can't be written or read any more, or a thread of the store has panicked.
    Disk(String),
    /// The state breaks an invariant, and must not be read again.
    Broken(Broken),
}

/// Reports a failure. The first one stays: it causes the later ones, such as a row store on the same disk.
pub(in crate::store) fn fail(failed: &watch::Sender<Option<StoreFailure>>, why: StoreFailure) {
    failed.send_if_modified(|known| {
        let is_first = known.is_none();
        if is_first {
            *known = Some(why);
        }
        is_first
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_of_a_store_stays() {
        let failed = watch::Sender::new(None);
        fail(&failed, StoreFailure::Disk("the log can't be written".to_owned()));
        fail(&failed, StoreFailure::Disk("the thread of the rows has panicked".to_owned()));
        assert_eq!(*failed.borrow(), Some(StoreFailure::Disk("the log can't be written".to_owned())));
    }
}
