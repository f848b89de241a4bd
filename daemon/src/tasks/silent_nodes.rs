//! Frees addresses of nodes that are silent on the servers and on the wire.
//!
//! `apply` checks each allocation again, so an address that answers meanwhile is kept.

use std::collections::BTreeMap;

use ipam_api::access::NodeKey;
use ipam_api::limits::RECLAIM_LINES_MAX;
use ipam_machine::command::{Reclaim, ReclaimReason};
use ipam_machine::id::AllocationId;
use ipam_machine::{Action, Answer, State};

use super::gc::GcSettings;
use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Allocations that one round frees at most; the next round frees the others.
const DUE_MAX: usize = 4_096;

/// Proposes the reclaim of allocations that are due, one entry for each node.
pub(super) async fn run(leader: &Leader<'_>, gc: GcSettings) -> Run {
    if !gc.silent_nodes {
        return Run::of(true);
    }
    let state = leader.node.stale().0;
    // A partition can silence every node: the search looks at all of their allocations.
    let due = tokio::task::spawn_blocking(move || due(&state, gc.node_grace_ms)).await;
    let mut run = Run::of(due.is_ok());
    for (node, allocations) in due.unwrap_or_default() {
        let reason = ReclaimReason::NodeSilent { grace_ms: gc.node_grace_ms };
        match leader.propose(Task::SilentNodes, Action::Reclaim(Reclaim { node, reason, allocations })).await
        {
            Some(Answer::Reclaimed { addresses, .. }) => run.reclaimed += addresses.len() as u64,
            _ => run.is_complete = false,
        }
    }
    run
}

/// Allocations that are due, by node. The bound counts due ones: nodes without witnesses come first in each
/// round, and would keep it from all others.
fn due(state: &State, grace_ms: u64) -> BTreeMap<NodeKey, Vec<AllocationId>> {
    let mut due: BTreeMap<NodeKey, Vec<AllocationId>> = BTreeMap::new();
    for suspect in state.suspects(grace_ms, None).filter(|suspect| suspect.is_due).take(DUE_MAX) {
        let of_node = due.entry(suspect.report.node.clone()).or_default();
        if of_node.len() < RECLAIM_LINES_MAX {
            of_node.push(suspect.allocation);
        }
    }
    due
}
