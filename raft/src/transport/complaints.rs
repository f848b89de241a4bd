//! Log lines about faults between peers: bounded in number, with each fault at intervals.
//!
//! **Invariant:** the number of lines is bounded for any input, from any number of addresses.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use ipam_api::limits::{PEER_LOG_INTERVAL_MS, PEER_LOG_LINES_MAX};

use crate::sync::held;

/// The time in which the same complaint isn't repeated, and in which lines are counted.
const INTERVAL: Duration = Duration::from_millis(PEER_LOG_INTERVAL_MS);
/// Peers whose last complaint is remembered; beyond that all are forgotten, and may be repeated.
const REMEMBERED_MAX: usize = 256;

/// The complaints that were made, with their times.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    last: BTreeMap<String, (String, Instant)>,
    /// The beginning of the interval, and the lines that were logged in it.
    interval: Option<(Instant, usize)>,
    /// Complaints since the last line that were not logged.
    left_out: u64,
}

impl Complaints {
    /// The number of complaints left out before this one; nothing if this one is left out, too.
    pub(crate) fn news(&self, peer: &str, what: &str) -> Option<u64> {
        held(&self.0).news(peer, what, Instant::now())
    }

    /// Removes the complaint about `peer`; returns true if there was one.
    pub(crate) fn settle(&self, peer: &str) -> bool {
        held(&self.0).last.remove(peer).is_some()
    }
}

impl Made {
    fn news(&mut self, peer: &str, what: &str, now: Instant) -> Option<u64> {
        let recent = |since: Instant| now.duration_since(since) < INTERVAL;
        let (since, lines) = self.interval.filter(|(since, _)| recent(*since)).unwrap_or((now, 0));
        let repeated = self.last.get(peer).is_some_and(|(before, when)| before == what && recent(*when));
        if repeated || lines >= PEER_LOG_LINES_MAX {
            self.left_out += 1;
            return None;
        }
        if self.last.len() >= REMEMBERED_MAX {
            self.last.clear();
        }
        self.last.insert(peer.to_owned(), (what.to_owned(), now));
        self.interval = Some((since, lines + 1));
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_until_it_is_settled() {
        let complaints = Complaints::default();
        assert_eq!(complaints.news("n2", "it hung up"), Some(0));
        assert_eq!(complaints.news("n2", "it hung up"), None);
        assert_eq!(complaints.news("n2", "no route"), Some(1));
        assert_eq!(complaints.news("n3", "no route"), Some(0));
        assert!(complaints.settle("n2"));
        assert!(!complaints.settle("n2"));
        assert_eq!(complaints.news("n2", "no route"), Some(0));
    }

    #[test]
    fn lines_about_any_number_of_callers_have_a_bound_and_the_rest_is_counted() {
        let (mut made, begun) = (Made::default(), Instant::now());
        let mut lines = 0;
        for caller in 0..10_000 {
            lines += usize::from(made.news(&format!("caller {caller}"), "nonsense", begun).is_some());
        }
        assert_eq!(lines, PEER_LOG_LINES_MAX);
        let left_out = 10_000 - PEER_LOG_LINES_MAX as u64;
        assert_eq!(made.news("another", "nonsense", begun + INTERVAL), Some(left_out));
        // One caller with ever new messages is no exception.
        let mut made = Made::default();
        let peer_report = (0..10_000).filter(|word| made.news("caller", &word.to_string(), begun).is_some());
        assert_eq!(peer_report.count(), PEER_LOG_LINES_MAX);
    }
}
