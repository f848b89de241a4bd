//! Parts of the servers' resources that the tasks read.

use ipam_api::limits::PROBER_SILENCE_MS_MAX;
use ipam_api::name::Name;
use ipam_api::resource::{Application, ApplicationStanding, Controller, EndpointKey};
use ipam_api::time::Timestamp;
use serde::Deserialize;

/// Endpoint with its incarnation and its controller.
#[derive(Debug, Deserialize)]
pub(crate) struct EndpointRow {
    #[serde(flatten)]
    pub(crate) key: EndpointKey,
    pub(crate) uid: Option<String>,
    pub(crate) controller: Option<Controller>,
}

/// Endpoint of a host with the ids of its allocations.
#[derive(Debug, Deserialize)]
pub(crate) struct HostRow {
    #[serde(flatten)]
    pub(crate) key: EndpointKey,
    pub(crate) uid: Option<String>,
    status: HostStatus,
}

#[derive(Debug, Deserialize)]
struct HostStatus {
    interfaces: Vec<HostInterface>,
}

#[derive(Debug, Deserialize)]
struct HostInterface {
    addresses: Vec<HostAddress>,
}

#[derive(Debug, Deserialize)]
struct HostAddress {
    allocation: u64,
}

impl HostRow {
    /// Ids of the allocations.
    pub(crate) fn allocations(&self) -> Vec<u64> {
        let addresses = self.status.interfaces.iter().flat_map(|interface| &interface.addresses);
        addresses.map(|address| address.allocation).collect()
    }
}

/// Uid of a reported pod.
#[derive(Debug, Deserialize)]
pub(crate) struct ReportedRow {
    pod: ReportedUid,
}

#[derive(Debug, Deserialize)]
struct ReportedUid {
    uid: String,
}

impl ReportedRow {
    pub(crate) fn uid(self) -> String {
        self.pod.uid
    }
}

/// Pool with the application that it was created for.
#[derive(Debug, Deserialize)]
pub(crate) struct PoolRow {
    status: PoolRowStatus,
}

#[derive(Debug, Deserialize)]
struct PoolRowStatus {
    application: Option<Application>,
}

impl PoolRow {
    /// Application of the pool, if it belongs to the realm and has not ended.
    pub(crate) fn present_in(self, realm: &Name) -> Option<Application> {
        let application = self.status.application?;
        let is_present = application.standing == ApplicationStanding::Present;
        (is_present && application.realm == *realm).then_some(application)
    }
}

/// Newest report of the agent of a node.
#[derive(Debug, Deserialize)]
pub(crate) struct AgentRow {
    heard_at: Timestamp,
}

impl AgentRow {
    /// True if the agent was heard so recently that its node is considered running.
    pub(crate) fn is_heard(&self, now: Timestamp) -> bool {
        now.0.saturating_sub(self.heard_at.0) <= PROBER_SILENCE_MS_MAX
    }
}
