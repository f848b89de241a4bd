//! Pauses of claims and pools before the next attempt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// Pause after a first failure, and the longest one.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// Pauses by key. They double from one failure to the next.
#[derive(Debug)]
pub(super) struct Pauses<K> {
    /// Newest pause of each key; its time is none while the next attempt runs.
    of: BTreeMap<K, (Option<Instant>, Duration)>,
    order: BTreeSet<(Instant, K)>,
}

impl<K> Default for Pauses<K> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Pauses<K> {
    /// Begins a longer pause after a failure.
    pub(super) fn fail(&mut self, key: K, now: Instant) {
        let former = self.of.get(&key).map(|(_, pause)| *pause);
        let pause = former.map_or(FIRST, |pause| (pause * 2).min(LONGEST));
        self.begin(key, now + pause, pause);
    }

    /// Begins a pause that follows no failure.
    pub(super) fn wait(&mut self, key: K, now: Instant, pause: Duration) {
        self.begin(key, now + pause, FIRST);
    }

    fn begin(&mut self, key: K, at: Instant, pause: Duration) {
        self.forget(&key);
        self.order.insert((at, key.clone()));
        self.of.insert(key, (Some(at), pause));
    }

    /// Records a success. A pause that has begun since then continues.
    pub(super) fn succeed(&mut self, key: &K) {
        if self.of.get(key).is_some_and(|(at, _)| at.is_none()) {
            self.of.remove(key);
        }
    }

    /// Forgets a key.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some((Some(at), _)) = self.of.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Key whose pause is over.
    pub(super) fn end(&mut self, now: Instant) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        if let Some((at, _)) = self.of.get_mut(&key) {
            *at = None;
        }
        Some(key)
    }

    /// End of the first pause.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_a_success() {
        let start = Instant::now();
        let mut pauses = Pauses::default();
        let mut lengths = Vec::new();
        let mut now = start;
        for _ in 0..9 {
            pauses.fail("a", now);
            let at = pauses.next().unwrap();
            lengths.push((at - now).as_millis());
            // What is shown meanwhile ends no pause.
            pauses.succeed(&"a");
            assert_eq!(pauses.end(now), None);
            now = at;
            assert_eq!(pauses.end(now), Some("a"));
        }
        assert_eq!(lengths, [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        pauses.succeed(&"a");
        pauses.fail("a", now);
        assert_eq!(pauses.next(), Some(now + FIRST));
        pauses.wait("a", now, LONGEST);
        pauses.fail("b", now);
        assert_eq!((pauses.end(now + FIRST), pauses.end(now + FIRST)), (Some("b"), None));
        pauses.forget(&"a");
        assert_eq!(pauses.next(), None);
    }
}
