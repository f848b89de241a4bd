//! Settings of a watcher.

use std::path::PathBuf;
use std::time::Duration;

use ipam_api::limits::KUBERNETES_CUSTOM_STATUS_MS;
use ipam_api::name::Name;

/// Default time between two scans.
const SCAN_INTERVAL: Duration = Duration::from_secs(600);

/// Settings of a watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Realm of the cluster.
    pub realm: Name,
    /// File with the addresses and credentials of the cluster; without it those of the container.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the file; without it the current one.
    pub context: Option<String>,
    /// Time between two scans, and the shortest absence that counts.
    pub scan_interval: Duration,
    /// True to report pods to the servers, so that they verify claims of nodes.
    pub verify: bool,
    /// True if custom resources are applied to the servers.
    pub custom_resources: bool,
    /// Shortest time between two writes of the status of a custom resource.
    pub status_interval: Duration,
}

impl Settings {
    /// Settings of a watcher inside its cluster.
    #[must_use]
    pub fn new(realm: Name) -> Self {
        Self {
            realm,
            kubeconfig: None,
            context: None,
            scan_interval: SCAN_INTERVAL,
            verify: true,
            custom_resources: false,
            status_interval: Duration::from_millis(KUBERNETES_CUSTOM_STATUS_MS),
        }
    }

    /// Manager of the mirrored resources.
    pub(crate) fn manager(&self) -> String {
        format!("kubernetes/{}", self.realm)
    }

    /// Manager of the subnets and pools of `NodeIPPool` objects.
    pub(crate) fn node_pool_manager(&self) -> String {
        format!("node-ip-pools/{}", self.realm)
    }
}
