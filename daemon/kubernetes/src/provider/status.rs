//! Status of a provider.

use ipam_api::time::Timestamp;

/// Status of a provider, as of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderStatus {
    /// True once claims, addresses, pools and clusters are listed.
    pub synced: bool,
    /// Start of this run.
    pub since: Timestamp,
    /// Newest error of the API server or of the servers; none after a success.
    pub error: Option<String>,
    /// Time of the newest event or bookmark of the watch on claims.
    pub heard: Option<Timestamp>,
    /// Numbers of objects.
    pub counts: ProviderCounts,
    /// Number of complete comparisons of the claims with the servers.
    pub compared: u64,
}

/// Numbers of objects of a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderCounts {
    /// Pools of the provider's kinds.
    pub pools: u64,
    /// Claims on these pools.
    pub claims: u64,
    /// Claims that wait for an address.
    pub waiting: u64,
}

impl ProviderStatus {
    /// Status at the start of a run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            synced: false,
            since: Timestamp::now(),
            error: None,
            heard: None,
            counts: ProviderCounts::default(),
            compared: 0,
        }
    }
}

impl Default for ProviderStatus {
    fn default() -> Self {
        Self::new()
    }
}
