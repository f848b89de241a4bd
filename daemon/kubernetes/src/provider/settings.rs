//! Settings of a provider.

use std::path::PathBuf;
use std::time::Duration;

use ipam_api::limits::KUBERNETES_CUSTOM_STATUS_MS;
use ipam_api::name::Name;

/// Time between two comparisons of the claims with the servers.
const COMPARE_INTERVAL: Duration = Duration::from_secs(600);

/// Settings of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Realm of the claims. Management clusters between which clusters move have one realm, so that a claim
    /// finds its address by name.
    pub realm: Name,
    /// File with the addresses and credentials of the management cluster; without it those of the container.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the file; without it the current one.
    pub context: Option<String>,
    /// True if each namespace has a network of its own, so that pools of two namespaces may have the same
    /// addresses.
    pub network_per_namespace: bool,
    /// Value of the label `cluster.x-k8s.io/watch-filter` of the objects to serve; all without it.
    pub watch_filter: Option<String>,
    /// Time between two reads of the counts of all pools.
    pub status_interval: Duration,
    /// Time between two comparisons of the claims with the servers.
    pub compare_interval: Duration,
}

impl ProviderSettings {
    /// Settings of a provider inside its management cluster.
    #[must_use]
    pub fn new(realm: Name) -> Self {
        Self {
            realm,
            kubeconfig: None,
            context: None,
            network_per_namespace: false,
            watch_filter: None,
            status_interval: Duration::from_millis(KUBERNETES_CUSTOM_STATUS_MS),
            compare_interval: COMPARE_INTERVAL,
        }
    }

    /// Manager of the resources that the provider creates.
    pub(crate) fn manager(&self) -> String {
        format!("cluster-api/{}", self.realm)
    }
}
