//! News of a watcher or a provider in the log: its first complete lists, and each error once.

use ipam_api::name::Name;
use ipam_kubernetes::{Counts, ProviderCounts, ProviderStatus, Status};
use tokio::sync::watch::Receiver;

/// Status whose news are logged.
pub(super) trait Reported: Clone + Default {
    /// True once the first lists are complete.
    fn is_synced(&self) -> bool;
    /// Newest error.
    fn error(&self) -> Option<&str>;
    /// Logs that the first lists are complete.
    fn log_synced(&self, realm: &Name);
    /// Logs an error.
    fn log_error(realm: &Name, error: &str);
}

impl Reported for Status {
    fn is_synced(&self) -> bool {
        self.synced
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn log_synced(&self, realm: &Name) {
        let Counts { pods, nodes, namespaces, controllers, .. } = self.counts;
        tracing::info!(%realm, pods, nodes, namespaces, controllers, "the cluster is watched");
    }

    fn log_error(realm: &Name, error: &str) {
        tracing::warn!(%realm, error, "the cluster can't be watched");
    }
}

impl Reported for ProviderStatus {
    fn is_synced(&self) -> bool {
        self.synced
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn log_synced(&self, realm: &Name) {
        let ProviderCounts { pools, claims, waiting, .. } = self.counts;
        tracing::info!(%realm, pools, claims, waiting, "the management cluster is served");
    }

    fn log_error(realm: &Name, error: &str) {
        tracing::warn!(%realm, error, "the management cluster can't be served");
    }
}

/// Status changes of a watcher that have been logged.
#[derive(Debug)]
pub(super) struct News<S> {
    realm: Name,
    status: Receiver<S>,
    was_synced: bool,
    error: Option<String>,
    /// Number of errors. A lasting error counts once.
    pub(super) errors: u64,
}

impl<S: Reported> News<S> {
    pub(super) fn new(realm: Name, status: Receiver<S>) -> Self {
        Self { realm, status, was_synced: false, error: None, errors: 0 }
    }

    /// Waits for the next status, and logs what is new in it. None once the watcher has ended.
    pub(super) async fn next(&mut self) -> Option<S> {
        self.status.changed().await.ok()?;
        let status = self.status.borrow_and_update().clone();
        if status.is_synced() && !self.was_synced {
            status.log_synced(&self.realm);
            self.was_synced = true;
        }
        // Each scan starts without an error and reports a lasting one again, so only new errors are logged.
        if let Some(error) = status.error().filter(|error| self.error.as_deref() != Some(*error)) {
            self.errors += 1;
            S::log_error(&self.realm, error);
            self.error = Some(error.to_owned());
        }
        Some(status)
    }
}
