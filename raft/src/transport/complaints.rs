//! What goes wrong between peers is logged once, and then not again for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the same complaint isn't repeated.
const QUIET: Duration = Duration::from_secs(30);
/// How many different ones are remembered; beyond that all are forgotten, and may be repeated.
const REMEMBERED_MAX: usize = 256;

/// Which complaints were made, and when.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<BTreeMap<String, (String, Instant)>>);

impl Complaints {
    /// Whether what is wrong with `whom` is news.
    pub(crate) fn is_news(&self, whom: &str, what: &str) -> bool {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.get(whom).is_some_and(|(before, when)| before == what && when.elapsed() < QUIET) {
            return false;
        }
        if made.len() >= REMEMBERED_MAX {
            made.clear();
        }
        made.insert(whom.to_owned(), (what.to_owned(), Instant::now()));
        true
    }

    /// Whether anything was wrong with `whom`; from now on nothing is.
    pub(crate) fn settle(&self, whom: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(whom).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_until_it_is_settled() {
        let complaints = Complaints::default();
        assert!(complaints.is_news("n2", "it hung up"));
        assert!(!complaints.is_news("n2", "it hung up"));
        assert!(complaints.is_news("n2", "no route"));
        assert!(complaints.is_news("n3", "no route"));
        assert!(complaints.settle("n2"));
        assert!(!complaints.settle("n2"));
        assert!(complaints.is_news("n2", "no route"));
    }
}
