//! Members that call this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tokio::sync::watch;

use crate::sync::held;

/// Information about the members that call this one, besides the log.
#[derive(Default)]
pub(super) struct Callers {
    /// The URLs for clients that they gave, by member.
    client_urls: Mutex<BTreeMap<u64, String>>,
    /// Members that were removed and have left the membership: no member speaks with them any more.
    pub(super) expelled: watch::Sender<BTreeSet<u64>>,
}

impl Callers {
    /// Notes the URL for clients of a caller.
    pub(super) fn note_client_url(&self, id: u64, client_url: String) {
        held(&self.client_urls).insert(id, client_url);
    }

    /// The URL for clients that a member gave.
    pub(super) fn client_url(&self, id: u64) -> Option<String> {
        held(&self.client_urls).get(&id).cloned()
    }
}
