//! Turns of ADDs: few enough at once that the members accept them all, and a bounded number that waits.

use std::time::Duration;

use ipam_api::limits::{AGENT_ADDS_AT_ONCE_MAX, AGENT_ADDS_WAITING_MAX, RETRY_AFTER_MS_MIN};
use ipam_api::problem::{Code, Problem};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Turns of ADDs, in order of arrival.
#[derive(Debug)]
pub struct Turns {
    at_once: Semaphore,
    waiting: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(AGENT_ADDS_AT_ONCE_MAX, AGENT_ADDS_WAITING_MAX)
    }
}

impl Turns {
    pub(crate) fn new(at_once: usize, waiting: usize) -> Self {
        Self { at_once: Semaphore::new(at_once), waiting: Semaphore::new(waiting) }
    }

    /// Number of ADDs that wait, of at most `max`.
    #[cfg(test)]
    pub(crate) fn waiting(&self, max: usize) -> usize {
        max - self.waiting.available_permits()
    }

    /// Waits for a turn, which lasts until the result is dropped.
    ///
    /// # Errors
    /// `overloaded` if too many ADDs wait, or no turn came in time.
    pub async fn take(&self, within: Duration) -> Result<SemaphorePermit<'_>, Problem> {
        if let Ok(turn) = self.at_once.try_acquire() {
            return Ok(turn);
        }
        let Ok(_waits) = self.waiting.try_acquire() else {
            let detail = format!("{AGENT_ADDS_WAITING_MAX} ADDs of this node wait already");
            return Err(Problem::new(Code::Overloaded, detail).retry_after(10 * RETRY_AFTER_MS_MIN));
        };
        match timeout(within, self.at_once.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let detail = format!("{AGENT_ADDS_AT_ONCE_MAX} ADDs of this node wait for the members");
                Err(Problem::new(Code::Overloaded, detail).retry_after(10 * RETRY_AFTER_MS_MIN))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn adds_beyond_the_turns_wait_and_beyond_the_queue_are_refused() {
        let turns = Arc::new(Turns::new(1, 1));
        let running = turns.take(LONG).await.unwrap();
        assert_eq!(turns.take(Duration::ZERO).await.unwrap_err().code, Code::Overloaded, "no turn in time");
        let waits = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take(LONG).await.map(drop) }
        });
        while turns.waiting(1) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = turns.take(LONG).await.unwrap_err();
        assert_eq!((refused.code, refused.code.entry().cni), (Code::Overloaded, 11));
        assert!(refused.help.contains("Retry in 1 s"), "{}", refused.help);
        drop(running);
        waits.await.unwrap().unwrap();
        drop(turns.take(LONG).await.unwrap());
    }
}
