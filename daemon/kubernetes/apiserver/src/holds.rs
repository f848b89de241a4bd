//! Requests that are held on the way: points at which a test kills a client.

use tokio::sync::watch;

use crate::server::{Request, Shared};

/// Stage at which a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request has arrived and is not applied. If its connection ends, it is never applied.
    Before,
    /// The request is applied, and its answer is held. A refused request isn't held.
    After,
}

/// Hold that waits for its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) verb: &'static str,
    /// Plural, with the subresource after a slash.
    pub(crate) plural: &'static str,
    /// Number of matching requests that pass before the request is held.
    pub(crate) skip: usize,
    pub(crate) stage: Stage,
}

/// Holds that wait, in the order of the test.
#[derive(Debug, Default)]
pub(crate) struct Holds(Vec<Hold>);

impl Holds {
    pub(crate) fn add(&mut self, hold: Hold) {
        self.0.push(hold);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns true if a hold matches the request, and removes the hold.
    fn take(&mut self, stage: Stage, request: &Request) -> bool {
        let is_match =
            |hold: &Hold| hold.stage == stage && hold.verb == request.verb && hold.plural == request.resource;
        let due = self.0.iter().position(|hold| is_match(hold) && hold.skip == 0);
        for hold in self.0.iter_mut().filter(|hold| is_match(hold)) {
            hold.skip = hold.skip.saturating_sub(1);
        }
        due.map(|index| self.0.remove(index)).is_some()
    }
}

/// Requests that are held now.
#[derive(Debug, Default)]
pub(crate) struct Held {
    requests: Vec<(u64, Request)>,
    /// Number of requests that were ever held.
    count: u64,
    /// Number of releases.
    released: u64,
}

impl Held {
    pub(crate) fn release(&mut self) {
        self.released += 1;
    }

    /// First request that is held.
    pub(crate) fn first(&self) -> Option<&Request> {
        self.requests.first().map(|(_, request)| request)
    }
}

/// Entry of a held request, until it goes on or its connection ends.
struct Entry<'a> {
    held: &'a watch::Sender<Held>,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.held.send_modify(|held| held.requests.retain(|(id, _)| *id != self.id));
    }
}

impl Shared {
    /// Waits while a fault holds the request at this stage.
    pub(crate) async fn pass(&self, stage: Stage, request: &Request) {
        let (mut changes, released, entry) = {
            // The lock of the state is held, so that no release is missed.
            let mut state = self.lock();
            if !state.faults.holds.take(stage, request) {
                return;
            }
            let mut now = (0, 0);
            self.held.send_modify(|held| {
                held.count += 1;
                held.requests.push((held.count, request.clone()));
                now = (held.count, held.released);
            });
            let (id, released) = now;
            (self.held.subscribe(), released, Entry { held: &self.held, id })
        };
        let _ = changes.wait_for(|held| held.released != released).await;
        drop(entry);
        // If the connection ended before the release, these yields let the server drop the request here.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }
}
