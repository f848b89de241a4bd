//! Pauses between attempts.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double from one failure to the next.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Waits before the next attempt.
    pub(crate) async fn wait(&mut self) {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        tokio::time::sleep(pause).await;
    }

    /// Starts anew after a success.
    pub(crate) fn reset(&mut self) {
        self.0 = FIRST;
    }
}
