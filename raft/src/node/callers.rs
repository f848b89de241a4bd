//! Members that connect to this one: their client URLs, and the removed ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tokio::sync::watch;

use crate::sync::held;

/// Information about the connecting members that isn't in the log.
#[derive(Default)]
pub(super) struct Callers {
    /// Client URLs that members reported, by member id.
    client_urls: Mutex<BTreeMap<u64, String>>,
    /// Ids of members that were removed and have left the membership; their connections are refused.
    pub(super) expelled: watch::Sender<BTreeSet<u64>>,
}

impl Callers {
    /// Records the client URL that a member reported.
    pub(super) fn note_client_url(&self, id: u64, client_url: String) {
        held(&self.client_urls).insert(id, client_url);
    }

    /// Returns the client URL that a member reported.
    pub(super) fn client_url(&self, id: u64) -> Option<String> {
        held(&self.client_urls).get(&id).cloned()
    }
}
