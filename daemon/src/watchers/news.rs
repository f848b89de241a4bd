//! News of a watcher in the log: its first complete lists, and each error once.

use ipam_api::name::Name;
use ipam_kubernetes::{Counts, Status};
use tokio::sync::watch::Receiver;

/// News so far.
#[derive(Debug)]
pub(super) struct News {
    realm: Name,
    status: Receiver<Status>,
    was_synced: bool,
    error: Option<String>,
    /// Number of errors. One that lasts counts once.
    pub(super) errors: u64,
}

impl News {
    pub(super) fn new(realm: Name, status: Receiver<Status>) -> Self {
        Self { realm, status, was_synced: false, error: None, errors: 0 }
    }

    /// Waits for the next status, and logs what is new in it. None once the watcher has ended.
    pub(super) async fn next(&mut self) -> Option<Status> {
        self.status.changed().await.ok()?;
        let status = self.status.borrow_and_update().clone();
        let realm = &self.realm;
        if status.synced && !self.was_synced {
            let Counts { pods, nodes, namespaces, controllers, .. } = status.counts;
            tracing::info!(%realm, pods, nodes, namespaces, controllers, "the cluster is watched");
            self.was_synced = true;
        }
        // Each scan begins without an error, and notes again one that lasts.
        if let Some(error) = status.error.as_ref().filter(|error| self.error.as_ref() != Some(error)) {
            self.errors += 1;
            tracing::warn!(%realm, error, "the cluster can't be watched");
            self.error = Some(error.clone());
        }
        Some(status)
    }
}
