//! A member with raft running, once it knows which cluster it belongs to.

use std::sync::Arc;

use openraft::async_runtime::watch::WatchReceiver;
use tokio::sync::watch;

use super::config::Timing;
use super::counters::Counters;
use super::elections::{Candidate, Elections};
use super::error::StartError;
use super::gate::Gate;
use super::proposals::Proposals;
use super::raft::RaftHandle;
use super::reads::Reads;
use super::snapshots::{self, SnapshotPolicy};
use super::tasks::Tasks;
use super::tenure::{Tenure, Tenures};
use crate::store::{LogReach, LogStore, MachineStore, SharedState, StoreCounters};
use crate::transport::{Network, Party, Peers};
use crate::types::Member;

/// What raft starts on; used once.
pub(super) struct Ingredients {
    pub(super) config: openraft::Config,
    pub(super) log: LogStore,
    pub(super) machine: MachineStore,
    pub(super) reach: LogReach,
    pub(super) snapshots: SnapshotPolicy,
    pub(super) state: SharedState,
    pub(super) counters: Arc<Counters>,
    pub(super) store: Arc<StoreCounters>,
    pub(super) timing: Timing,
    pub(super) gate: Arc<Gate>,
}

/// The running member.
pub(super) struct Running {
    pub(super) raft: RaftHandle,
    pub(super) peers: Peers,
    pub(super) cluster_id: String,
    pub(super) me: Party,
    pub(super) office: watch::Receiver<Option<Tenure>>,
    pub(super) proposals: Proposals,
    pub(super) reads: Reads,
    pub(super) elections: Arc<Elections>,
    pub(super) log: LogStore,
    /// How fast snapshots are sent.
    pub(super) snapshot_bytes_per_second: u64,
}

impl Running {
    /// Starts raft and the tasks around it.
    pub(super) async fn start(
        ingredients: Ingredients,
        cluster_id: String,
        me: Party,
        peers: Peers,
        tasks: &Tasks,
    ) -> Result<Self, StartError> {
        let Ingredients {
            config,
            log,
            machine,
            reach,
            snapshots: policy,
            state,
            counters,
            store,
            timing,
            gate,
        } = ingredients;
        let network = Network { peers: peers.clone(), bytes_per_second: policy.bytes_per_second };
        let reader = log.clone();
        let raft = RaftHandle::new(me.member_id, Arc::new(config), network, log, machine)
            .await
            .map_err(|error| StartError::Raft(error.to_string()))?;
        let (in_office, office) = watch::channel(None);
        let tenures =
            Tenures { raft: raft.clone(), timing, state, office: in_office, counters: counters.clone() };
        tasks.spawn(tenures.follow());
        tasks.spawn(snapshots::run(raft.clone(), reach, policy));
        let elections = Arc::new(Elections::new());
        let candidate = Candidate {
            raft: raft.clone(),
            peers: peers.clone(),
            elections: elections.clone(),
            timing,
            counters: counters.clone(),
            store,
        };
        tasks.spawn(candidate.run());
        let (proposals, proposing) = Proposals::new(raft.clone(), office.clone(), gate, counters.clone());
        tasks.spawn(proposing);
        let (reads, reading) = Reads::new(raft.clone(), peers.clone(), counters);
        tasks.spawn(reading);
        let snapshot_bytes_per_second = policy.bytes_per_second;
        Ok(Self {
            raft,
            peers,
            cluster_id,
            me,
            office,
            proposals,
            reads,
            elections,
            log: reader,
            snapshot_bytes_per_second,
        })
    }

    /// The members, as this one knows them.
    pub(super) fn members(&self) -> Vec<(u64, Member)> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        let nodes = metrics.membership_config.membership().nodes();
        nodes.map(|(id, member)| (*id, member.clone())).collect()
    }

    /// The same as others are told it: id, name, disk id.
    pub(super) fn acquaintances(&self) -> Vec<(u64, String, String)> {
        self.members().into_iter().map(|(id, member)| (id, member.name, member.disk_id)).collect()
    }
}
