//! Signs of life of a watch.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ipam_api::time::Timestamp;
use tokio::time::Instant;

/// Minimum time between the starts of two watches, because a server may end each watch at once.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Signs of life of the watches of one resource.
#[derive(Debug)]
pub(crate) struct Signal {
    /// Plural of the resource.
    pub(crate) plural: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Option<Timestamp>,
    next_watch: Option<Instant>,
}

impl Signal {
    pub(crate) fn new(plural: &'static str) -> Self {
        Self { plural, state: Mutex::default() }
    }

    /// Time of the newest event or bookmark. A list is no sign of life: it may be stale.
    pub(crate) fn heard(&self) -> Option<Timestamp> {
        self.lock().heard
    }

    pub(super) fn note(&self) {
        self.lock().heard = Some(Timestamp::now());
    }

    /// Waits until the next watch may start.
    pub(super) async fn turn(&self) {
        let at = {
            let mut state = self.lock();
            let at = state.next_watch.map_or_else(Instant::now, |next| next.max(Instant::now()));
            state.next_watch = Some(at + WATCH_INTERVAL);
            at
        };
        tokio::time::sleep_until(at).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
