//! Waiting for something to be so, and never for time to pass.

use std::time::{Duration, Instant};

/// Longer than anything may take on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(240);
/// Polling interval.
const LOOK: Duration = Duration::from_millis(10);

/// Polls until a condition holds; fails with the last observation.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(why) => assert!(begun.elapsed() < LONG, "it never came about that {what}; last seen: {why}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
