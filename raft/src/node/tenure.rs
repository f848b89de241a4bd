//! This member's time in office, and the log time that runs with it.

use std::sync::Arc;
use std::time::Duration;

use openraft::ReadPolicy;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use openraft::type_config::alias::CommittedLeaderIdOf;
use openraft::vote::RaftLeaderId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::counters::Counters;
use super::running::RaftHandle;
use crate::store::SharedState;
use crate::types::Types;

/// How long to wait before trying again to take office.
const RETRY: Duration = Duration::from_millis(10);
/// How long taking office may take before the situation is looked at anew.
const TAKING_OFFICE: Duration = Duration::from_secs(1);

/// One time in office of this member: from when everything of its predecessors is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tenure {
    /// What entries of this time carry; a proposal names it, so that it can't slip into another time.
    pub(super) leader_id: CommittedLeaderIdOf<Types>,
    base_ms: u64,
    since: Instant,
}

impl Tenure {
    /// The log time now: it goes on where the predecessors left it, by this process's monotonic clock. While
    /// nobody leads it stands still.
    pub(super) fn log_time_ms(&self) -> u64 {
        self.log_time_at_ms(Instant::now())
    }

    /// What the log time will be then.
    pub(super) fn log_time_at_ms(&self, when: Instant) -> u64 {
        let measured = when.saturating_duration_since(self.since).as_millis();
        self.base_ms.saturating_add(u64::try_from(measured).unwrap_or(u64::MAX))
    }

    /// The Raft term.
    pub(super) fn term(&self) -> u64 {
        self.leader_id.term
    }
}

/// The leadership that is this member's, if one is.
fn leadership(metrics: &RaftServerMetrics<Types>) -> Option<CommittedLeaderIdOf<Types>> {
    let leader_id = metrics.vote.leader_id();
    let mine = metrics.vote.is_committed() && leader_id.node_id == metrics.id;
    mine.then(|| leader_id.to_committed())
}

/// Follows raft and says when this member is in office.
pub(super) async fn follow(
    raft: RaftHandle,
    state: SharedState,
    office: watch::Sender<Option<Tenure>>,
    counters: Arc<Counters>,
) {
    let mut changes = raft.server_metrics();
    let mut leader = None;
    loop {
        // Only what came through the channel that is waited on: openraft's others may be ahead or behind.
        let (leads, known) = {
            let metrics = changes.borrow_and_update();
            (leadership(&metrics), metrics.current_leader)
        };
        if known.is_some() && known != leader {
            leader = known;
            Counters::add(&counters.leader_changes);
        }
        let held = office.borrow().map(|tenure| tenure.leader_id);
        if held != leads {
            // Between two times in office nothing may be proposed.
            office.send_replace(None);
            if let Some(leader_id) = leads {
                // Linearizable means here: the blank entry of this term is committed, and all before it applied.
                let took = timeout(TAKING_OFFICE, raft.ensure_linearizable(ReadPolicy::ReadIndex)).await;
                if !matches!(took, Ok(Ok(read)) if *read.committed_leader_id() == leader_id) {
                    sleep(RETRY).await;
                    continue;
                }
                let base_ms = state.with(|state| state.log_time_ms());
                office.send_replace(Some(Tenure { leader_id, base_ms, since: Instant::now() }));
                Counters::add(&counters.leaderships);
                tracing::info!(term = leader_id.term, log_time_ms = base_ms, "this member leads");
                continue;
            }
            tracing::info!("this member no longer leads");
        }
        if changes.changed().await.is_err() {
            office.send_replace(None);
            return;
        }
    }
}
