//! The journal for the daemon: pages of events, and notification of new ones.

use tokio::sync::watch;

use super::handle::Node;
use crate::store::{EventPage, EventQuery, JournalError};
use crate::threads;

impl Node {
    /// Returns a page of events from this member's own journal, up to its applied index.
    ///
    /// # Errors
    /// If the events are no longer kept, or not here yet; see [`JournalError`].
    pub async fn events(&self, query: EventQuery) -> Result<EventPage, JournalError> {
        let journal = self.inner().journal.clone();
        let read = threads::blocking(move || journal.page(&query)).await;
        read.unwrap_or(Err(JournalError::Stopped))
    }

    /// Watches the newest revision that has events.
    #[must_use]
    pub fn events_revision(&self) -> watch::Receiver<u64> {
        self.inner().state.events()
    }

    /// Watches whether this member has begun to stop: streams should then end.
    #[must_use]
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.inner().lifecycle.stopping.subscribe()
    }
}
