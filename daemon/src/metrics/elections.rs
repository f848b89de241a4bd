//! Metrics of leaders and elections.

use ipam_raft::node::NodeMetrics;
use prometheus_client::metrics::counter::Counter;

use super::catalogue::Catalogue;
use super::number::{Number, raise};

#[derive(Debug, Clone)]
pub(super) struct Elections {
    leader_changes: Counter,
    quorum_losses: Counter,
    begun: Counter,
    won: Counter,
    timeout_ms: Number,
}

impl Elections {
    pub(super) fn new(catalogue: &mut Catalogue) -> Self {
        Self {
            leader_changes: catalogue.plain("raft_leader_changes", "Leader changes observed by this member"),
            quorum_losses: catalogue
                .plain("raft_quorum_losses", "Leaderships of this member that ended for lack of a quorum"),
            begun: catalogue
                .plain("raft_elections", "Elections started by this member after a successful pre-vote"),
            won: catalogue.plain("raft_elections_won", "Elections won by this member"),
            timeout_ms: catalogue.plain(
                "raft_election_timeout_ms",
                "Election timeout in milliseconds: election_min_ms, or more for slow disks",
            ),
        }
    }

    pub(super) fn set(&self, counters: &NodeMetrics) {
        raise(&self.leader_changes, counters.leader_changes);
        raise(&self.quorum_losses, counters.leaderships_without_quorum);
        raise(&self.begun, counters.elections);
        raise(&self.won, counters.elections_won);
        self.timeout_ms.set(counters.election_timeout_ms);
    }
}
