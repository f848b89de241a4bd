//! Pauses between attempts: doubled each time, up to a limit, with a random part.

use std::time::Duration;

/// First pause.
const FIRST: Duration = Duration::from_millis(200);
/// Longest pause.
const LAST: Duration = Duration::from_secs(30);

/// Pauses of one task.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Next pause, randomly between half and all of its length, since the agents of many nodes lose a server
    /// at the same moment.
    pub(crate) fn next(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.attempts.min(16)).min(LAST);
        self.attempts = self.attempts.saturating_add(1);
        jittered(whole)
    }

    /// Restarts with the shortest pause after a success.
    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Random duration from the half to the whole.
pub(crate) fn jittered(whole: Duration) -> Duration {
    whole / 2 + whole / 2 * u32::from(random()) / u32::from(u8::MAX)
}

fn random() -> u8 {
    #[cfg(feature = "testing")]
    if let Some(simulation) = crate::testing::present() {
        let [random, ..] = (simulation.random)().to_le_bytes();
        return random;
    }
    let [random, ..] = *uuid::Uuid::new_v4().as_bytes();
    random
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        assert!(pauses[0] <= FIRST && pauses[0] >= FIRST / 2, "{:?}", pauses[0]);
        assert!(pauses.iter().skip(10).all(|pause| *pause <= LAST && *pause >= LAST / 2), "{pauses:?}");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
