//! The handle on raft, and the leader as raft knows it.

use openraft::async_runtime::watch::WatchReceiver;

use crate::store::MachineStore;
use crate::types::{Member, Types};

pub(super) type RaftHandle = openraft::Raft<Types, MachineStore>;

/// Error of a call on raft: it has ended.
pub(super) type RaftError = openraft::error::RaftError<Types>;

/// Leader, as far as this member knows.
pub(super) enum Leader {
    Unknown,
    Me,
    Other(u64, Member),
}

impl Leader {
    /// The leader's id, if this member knows a leader. `me` is the id of this member.
    pub(super) fn id(&self, me: u64) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Me => Some(me),
            Self::Other(id, _) => Some(*id),
        }
    }
}

/// Waits until this member knows a leader other than `id`.
pub(super) async fn superseded(raft: &RaftHandle, id: u64) {
    let mut changes = raft.server_metrics();
    let me = changes.borrow_watched().id;
    while leader(raft).id(me).is_none_or(|known| known == id) {
        if changes.changed().await.is_err() {
            // Raft has ended, and learns of no leader any more.
            return std::future::pending().await;
        }
    }
}

pub(super) fn leader(raft: &RaftHandle) -> Leader {
    let metrics = raft.server_metrics();
    let metrics = metrics.borrow_watched();
    match metrics.current_leader {
        None => Leader::Unknown,
        Some(id) if id == metrics.id => Leader::Me,
        Some(id) => match metrics.membership_config.membership().get_node(&id) {
            Some(member) => Leader::Other(id, member.clone()),
            None => Leader::Unknown,
        },
    }
}
