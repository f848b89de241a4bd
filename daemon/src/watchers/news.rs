//! News of a watcher or a provider in the log: its first complete lists, and each error once.

use ipam_api::name::Name;
use ipam_kubernetes::{Counts, ProviderCounts, ProviderStatus, Status};
use tokio::sync::watch::Receiver;

/// Rounds without an error after which an equal error is a new one. Each scan starts without an error, and
/// a lasting error is reported again before the next scan ends.
const RECOVERY_ROUNDS: u64 = 2;

/// Status whose news are logged.
pub(super) trait Reported: Clone + Default {
    /// True once the first lists are complete.
    fn is_synced(&self) -> bool;
    /// Newest error.
    fn error(&self) -> Option<&str>;
    /// Number of complete scans or comparisons.
    fn rounds(&self) -> u64;
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

    fn rounds(&self) -> u64 {
        self.scans
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

    fn rounds(&self) -> u64 {
        self.compared
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
    /// Error that is logged already, until a recovery.
    error: Option<String>,
    /// Number of rounds when this error was last reported.
    rounds: u64,
    /// Number of errors. A lasting error counts once.
    pub(super) errors: u64,
}

impl<S: Reported> News<S> {
    pub(super) fn new(realm: Name, status: Receiver<S>) -> Self {
        Self { realm, status, was_synced: false, error: None, rounds: 0, errors: 0 }
    }

    /// Waits for the next status, and logs what is new in it. None once the watcher has ended.
    pub(super) async fn next(&mut self) -> Option<S> {
        self.status.changed().await.ok()?;
        let status = self.status.borrow_and_update().clone();
        if status.is_synced() && !self.was_synced {
            status.log_synced(&self.realm);
            self.was_synced = true;
        }
        if let Some(error) = status.error() {
            self.rounds = status.rounds();
            if self.error.as_deref() != Some(error) {
                self.errors += 1;
                S::log_error(&self.realm, error);
                self.error = Some(error.to_owned());
            }
        } else if status.rounds() >= self.rounds + RECOVERY_ROUNDS {
            self.error = None;
        }
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch::channel;

    use super::*;

    #[tokio::test]
    async fn a_lasting_error_counts_once_and_again_after_a_recovery() {
        let (status, receiver) = channel(Status::new());
        let mut news = News::new(Name::default_name(), receiver);
        for (scans, error, errors) in [
            (0, Some("a"), 1),
            // Each scan starts without the error and reports it again.
            (0, None, 1),
            (0, Some("a"), 1),
            (1, Some("a"), 1),
            (1, None, 1),
            (2, None, 1),
            (2, Some("a"), 1),
            // Two scans without the error are a recovery.
            (2, None, 1),
            (3, None, 1),
            (4, None, 1),
            (4, Some("a"), 2),
            (4, Some("b"), 3),
        ] {
            status.send_modify(|status| {
                (status.scans, status.error) = (scans, error.map(str::to_owned));
            });
            assert!(news.next().await.is_some());
            assert_eq!(news.errors, errors, "{scans} {error:?}");
        }
    }
}
