//! A member with raft running, once it knows which cluster it belongs to.

use std::collections::BTreeSet;
use std::sync::Arc;

use openraft::RaftState;
use openraft::async_runtime::watch::WatchReceiver;
use tokio::sync::watch;

use super::elections::Elections;
use super::own_leadership::OwnLeadership;
use super::proposals::Proposals;
use super::raft::RaftHandle;
use super::reads::Reads;
use crate::store::LogStore;
use crate::transport::{PeerIdentity, Peers};
use crate::types::{Member, Types};

/// The running member.
pub(super) struct Running {
    pub(super) raft: RaftHandle,
    pub(super) peers: Peers,
    pub(super) cluster_id: String,
    pub(super) me: PeerIdentity,
    pub(super) own_leadership: watch::Receiver<Option<OwnLeadership>>,
    pub(super) proposals: Proposals,
    pub(super) reads: Reads,
    pub(super) elections: Arc<Elections>,
    pub(super) log: LogStore,
}

impl Running {
    /// The members, as this one knows them.
    pub(super) fn members(&self) -> Vec<(u64, Member)> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let nodes = metrics.membership_config.membership().nodes();
        nodes.map(|(id, member)| (*id, member.clone())).collect()
    }

    /// Members of the newest configuration in the log. Unlike [`Self::members`], which is empty until raft
    /// has published its first state, it is complete from the start on. None once raft has ended.
    pub(super) async fn stored_members(&self) -> Option<Vec<(u64, Member)>> {
        let read = |state: &RaftState<Types>| {
            let nodes = state.membership_state.effective().membership().nodes();
            nodes.map(|(id, member)| (*id, member.clone())).collect()
        };
        self.raft.with_raft_state(read).await.ok()
    }

    /// Returns true once raft has answered, false if it has ended.
    pub(super) async fn responds(&self) -> bool {
        self.raft.with_raft_state(|_| ()).await.is_ok()
    }

    /// The members that vote, as this one knows them.
    pub(super) fn voters(&self) -> BTreeSet<u64> {
        self.raft.server_metrics().borrow_watched().membership_config.membership().voter_ids().collect()
    }

    /// Returns the members in the form that is sent to peers: id, name, disk id.
    pub(super) fn known_peers(&self) -> Vec<(u64, String, String)> {
        self.members().into_iter().map(|(id, member)| (id, member.name, member.disk_id)).collect()
    }
}
