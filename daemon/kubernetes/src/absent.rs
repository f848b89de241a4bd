//! Absence in two scans.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Keys that were absent from scans, each with the time of the first of these scans.
#[derive(Debug)]
pub(crate) struct Absent<K>(BTreeMap<K, Instant>);

impl<K> Default for Absent<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Absent<K> {
    /// Records the keys absent from a scan. Returns those already absent from a scan at least one interval
    /// ago.
    pub(crate) fn scan(&mut self, absent: BTreeSet<K>, now: Instant, interval: Duration) -> Vec<K> {
        self.0.retain(|key, _| absent.contains(key));
        for key in absent {
            self.0.entry(key).or_insert(now);
        }
        let is_due = |since: &Instant| *since < now && now.duration_since(*since) >= interval;
        self.0.iter().filter(|(_, since)| is_due(since)).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets a key, so that it needs two scans again.
    pub(crate) fn forget(&mut self, key: &K) {
        self.0.remove(key);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_scans_one_interval_apart_are_needed() {
        let mut absent = Absent::default();
        let interval = Duration::from_secs(10);
        let start = Instant::now();
        let mut scan = |keys: &[&'static str], seconds| {
            absent.scan(keys.iter().copied().collect(), start + Duration::from_secs(seconds), interval)
        };
        assert!(scan(&["a", "b"], 0).is_empty());
        assert!(scan(&["a", "b"], 9).is_empty(), "a scan that came early");
        assert_eq!(scan(&["a", "c"], 10), ["a"]);
        assert!(scan(&["b"], 20).is_empty(), "it was there meanwhile");
        assert_eq!(scan(&["b"], 30), ["b"]);
        assert_eq!(absent.len(), 1);
        absent.forget(&"b");
        assert_eq!(absent.len(), 0);
        let mut at_once = Absent::default();
        assert!(at_once.scan(["a"].into(), start, Duration::ZERO).is_empty());
    }
}
