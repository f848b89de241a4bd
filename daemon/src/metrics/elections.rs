//! Metrics of leaders and elections.

use ipam_raft::node::NodeMetrics;
use prometheus_client::metrics::counter::Counter;

use super::catalogue::Catalogue;
use super::number::{Number, raise};

#[derive(Debug, Clone, Default)]
pub(super) struct Elections {
    leader_changes: Counter,
    quorum_losses: Counter,
    begun: Counter,
    won: Counter,
    timeout_ms: Number,
}

impl Elections {
    pub(super) fn register(&self, catalogue: &mut Catalogue) {
        let changes = "How often this member learned of another leader";
        catalogue.add("raft_leader_changes", &[], changes, self.leader_changes.clone());
        let losses = "Leaderships of this member that ended because no majority acknowledged it";
        catalogue.add("raft_quorum_losses", &[], losses, self.quorum_losses.clone());
        let begun = "Elections that this member began with a majority that would vote for it";
        catalogue.add("raft_elections", &[], begun, self.begun.clone());
        let won = "Elections that made this member the leader";
        catalogue.add("raft_elections_won", &[], won, self.won.clone());
        let timeout =
            "Time that votes have to reach the disks: election_min_ms, or more where the disk is slow";
        catalogue.add("raft_election_timeout_ms", &[], timeout, self.timeout_ms.clone());
    }

    pub(super) fn set(&self, counters: &NodeMetrics) {
        raise(&self.leader_changes, counters.leader_changes);
        raise(&self.quorum_losses, counters.leaderships_without_quorum);
        raise(&self.begun, counters.elections);
        raise(&self.won, counters.elections_won);
        self.timeout_ms.set(counters.election_timeout_ms);
    }
}
