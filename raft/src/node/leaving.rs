//! Graceful stop: proposals that run are completed, and leadership is handed over.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::error::Failure;
use super::inner::Inner;
use super::transfer::hand_over;
use crate::store::Closer;

/// Interval between two checks for proposals that still run.
const LOOK: Duration = Duration::from_millis(5);

/// Stops a member gracefully, as far as the time allows.
pub(super) async fn leave(inner: &Inner, closer: Option<Closer>, deadline: Instant) {
    inner.lifecycle.stopping.send_replace(true);
    // Half of the time is for running proposals, the other half for the leadership transfer.
    let begun = Instant::now();
    let drained = begun + deadline.saturating_duration_since(begun) / 2;
    while inner.counters.proposals_waiting.load(Relaxed) > 0 && Instant::now() < drained {
        sleep(LOOK).await;
    }
    let running = inner.lifecycle.running();
    if let Some(running) = &running {
        hand_over(running, inner.profile.timing, deadline, |_| true).await;
    }
    inner.lifecycle.tasks.end().await;
    inner.leadership.leads.send_replace(None);
    inner.lifecycle.running.send_replace(None);
    if let Some(running) = running {
        running.peers.close();
        if let Err(error) = running.raft.shutdown().await {
            tracing::warn!(%error, "raft didn't stop in good order");
        }
    }
    if let Some(closer) = closer {
        match timeout_at(deadline, closer.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store didn't close in good order; the next start will take longer");
            }
            Err(_) => tracing::warn!("the disk took too long to close; the next start will take longer"),
        }
    }
    // An invariant may be found broken while the last rows or a snapshot are written, after the end of the
    // task that reports failures of the store.
    if let Some(broken) = inner.state.broken() {
        inner.lifecycle.fail(Failure::Broken(broken.to_string()));
    }
    inner.lifecycle.unlock();
}
