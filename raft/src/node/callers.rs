//! Members that call this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tokio::sync::watch;

use crate::sync::held;

/// What this member knows of those that call it, beside the log.
#[derive(Default)]
pub(super) struct Callers {
    /// Where they said that they answer clients, by member.
    client_urls: Mutex<BTreeMap<u64, String>>,
    /// Members that were removed and have left the membership: nobody speaks with them any more.
    pub(super) expelled: watch::Sender<BTreeSet<u64>>,
}

impl Callers {
    /// Notes where a caller answers clients.
    pub(super) fn note_client_url(&self, id: u64, client_url: String) {
        held(&self.client_urls).insert(id, client_url);
    }

    /// Where a member has said that it answers clients.
    pub(super) fn client_url(&self, id: u64) -> Option<String> {
        held(&self.client_urls).get(&id).cloned()
    }
}
