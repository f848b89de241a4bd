//! Full scan: deletes empty terminating pools, and logs endpoints without addresses and claims.
//!
//! `apply` deletes an empty terminating pool, and an endpoint without addresses and claims, in the step that
//! empties it. The scan detects violations of these rules, and no test has produced one.

use ipam_machine::command::{Delete, Expect, Kind};
use ipam_machine::{Action, State};

use super::leader::Leader;
use super::status::Run;
use super::task::Task;

/// Proposes the deletion of empty pools that are terminating, and reports endpoints without addresses.
pub(super) async fn run(leader: &Leader<'_>) -> Run {
    let state = leader.node.stale().0;
    let endpoints = ipam_raft::blocking({
        let state = state.clone();
        move || empty_endpoints(&state)
    });
    let endpoints = endpoints.await.unwrap_or_default();
    if endpoints > 0 {
        tracing::warn!(endpoints, "the full scan found endpoints without addresses and claims");
    }
    let mut run = Run::of(endpoints == 0);
    for pool in empty_pools(&state) {
        tracing::warn!(%pool, "the full scan found an empty pool that is terminating");
        let delete = Delete { kind: Kind::Pool, name: (&pool).into(), expect: Expect::Anything, drain: true };
        match leader.propose(Task::Scan, Action::Delete(delete)).await {
            Some(_) => run.reclaimed += 1,
            None => run.is_complete = false,
        }
    }
    run
}

/// Terminating pools without a held address.
fn empty_pools(state: &State) -> Vec<ipam_api::Name> {
    let terminating = state.pools.iter().filter(|(_, row)| row.spec.terminating);
    let empty = terminating.filter(|(id, _)| state.space(*id).is_some_and(|space| space.held() == 0));
    empty.map(|(_, row)| row.spec.name.clone()).collect()
}

/// Number of endpoints without addresses and claims.
fn empty_endpoints(state: &State) -> usize {
    let empty = |row: &ipam_machine::model::Endpoint| {
        row.allocations.is_empty() && row.waiting.is_none() && row.sticky.is_none()
    };
    state.endpoints.iter().filter(|(_, row)| empty(row)).count()
}
