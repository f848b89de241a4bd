//! Status of a watcher.

use std::collections::BTreeMap;

use ipam_api::Code;
use ipam_api::time::Timestamp;

/// Status of a watcher, as of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// True once pods and nodes are listed. Nothing is reclaimed before.
    pub synced: bool,
    /// Start of this run.
    pub since: Timestamp,
    /// Newest error of the API server or of the servers since the last scan began.
    pub error: Option<String>,
    /// Time of the newest event or bookmark of each watch, by the plural of its resource.
    pub heard: BTreeMap<&'static str, Timestamp>,
    /// Numbers of watched objects.
    pub counts: Counts,
    /// Number of complete scans.
    pub scans: u64,
    /// Number of uids that the newest scan lacked.
    pub absent: u64,
    /// Number of absent uids that a quorum read found alive.
    pub refuted: u64,
    /// Number of facts that wait for an answer.
    pub waiting: u64,
    /// Number of facts that were dropped because too many waited. A later scan finds the uids again.
    pub dropped: u64,
    /// Number of released addresses.
    pub reclaimed: u64,
    /// Number of ended controllers.
    pub ended: u64,
    /// Number of comparisons of the custom resources with the servers.
    pub compared: u64,
    /// Number of comparisons of the pools of host addresses with the servers.
    pub node_pools_compared: u64,
    /// Number of comparisons of the host policies with the objects of kubernetes-nmstate.
    pub host_policies_compared: u64,
    /// Present refusals of mirrors and custom resources, and refused requests since the start, by the code of
    /// the problem.
    pub refused: BTreeMap<Code, u64>,
}

/// Numbers of watched objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods.
    pub pods: u64,
    /// Nodes.
    pub nodes: u64,
    /// Namespaces.
    pub namespaces: u64,
    /// Controllers.
    pub controllers: u64,
    /// Custom resources.
    pub custom_resources: u64,
}

impl Status {
    /// Status at the start of a run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            synced: false,
            since: Timestamp::now(),
            error: None,
            heard: BTreeMap::new(),
            counts: Counts::default(),
            scans: 0,
            absent: 0,
            refuted: 0,
            waiting: 0,
            dropped: 0,
            reclaimed: 0,
            ended: 0,
            compared: 0,
            node_pools_compared: 0,
            host_policies_compared: 0,
            refused: BTreeMap::new(),
        }
    }

    /// Counts a refusal.
    pub(crate) fn refuse(&mut self, code: Code) {
        *self.refused.entry(code).or_default() += 1;
    }
}

impl Default for Status {
    fn default() -> Self {
        Self::new()
    }
}
