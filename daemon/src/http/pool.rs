//! `/v1/pools`.

use ipam_api::name::Name;
use ipam_api::resource::{Condition, Pool, PoolStatus, Resource};
use ipam_api::time::Timestamp;
use ipam_raft::machine::command::{Expect, Kind, PoolIntention, Put};
use ipam_raft::machine::event::Readiness;
use ipam_raft::machine::model::PoolState;
use ipam_raft::machine::space::Space;
use ipam_raft::machine::{Action, State};

use super::convert::{counts, labels, meta, remarks};
use super::resource::Kinded;

/// Pools.
pub(super) struct Pools;

impl Kinded for Pools {
    const PATH: &'static str = "pools";
    const KIND: Kind = Kind::Pool;
    type Intention = Pool;
    type Status = PoolStatus;

    fn name(intention: &Pool) -> &Name {
        &intention.name
    }

    fn put(pool: Pool, expect: Expect) -> Action {
        let intention = PoolIntention {
            name: pool.name,
            subnet: pool.subnet,
            network: pool.network,
            ranges: pool.ranges,
            exclude: pool.exclude,
            strategy: pool.strategy,
            cooling_ms: pool.cooling_ms,
            strict_cooling: pool.strict_cooling,
            allow_edges: pool.allow_edges,
            default: pool.default,
            disabled: pool.disabled,
            terminating: pool.terminating,
            remarks: remarks(pool.description, pool.labels, pool.annotations, pool.managed_by),
        };
        Action::PutPool(Put { intention, expect })
    }

    fn show(state: &State, id: u64) -> Option<Resource<Pool, PoolStatus>> {
        let row = state.pools.get(id)?;
        let subnet = state.subnets.get(row.subnet)?;
        let space = state.space(id)?;
        let pool = &row.intention;
        let intention = Pool {
            name: pool.name.clone(),
            subnet: pool.subnet.clone(),
            network: Some(subnet.intention.network.clone()),
            ranges: pool.ranges.clone(),
            exclude: pool.exclude.clone(),
            strategy: pool.strategy,
            cooling_ms: pool.cooling_ms,
            strict_cooling: pool.strict_cooling,
            allow_edges: pool.allow_edges,
            default: pool.default,
            disabled: pool.disabled,
            terminating: pool.terminating,
            description: pool.remarks.description.to_string(),
            labels: labels(&pool.remarks.labels),
            annotations: labels(&pool.remarks.annotations),
            managed_by: pool.remarks.managed_by.as_ref().map(ToString::to_string),
        };
        let status = PoolStatus {
            revision: state.revision(),
            family: space.family,
            cidr: subnet.intention.cidr,
            counts: counts(space.counts()),
            conditions: state.pool_states.get(id).map(|row| ready(row, space)).into_iter().collect(),
        };
        Some(Resource { intention, meta: meta(&row.meta), status })
    }
}

/// Whether the pool can give, in words.
fn ready(row: &PoolState, space: &Space) -> Condition {
    let counts = space.counts();
    let message = match row.readiness {
        Readiness::Serving => String::new(),
        Readiness::Exhausted => format!("0 free of {}", counts.size),
        Readiness::Disabled => "gives nothing until it is enabled".to_owned(),
        Readiness::Terminating => format!("{} left", counts.allocated),
    };
    Condition {
        kind: "Ready".to_owned(),
        status: if row.readiness == Readiness::Serving { "True" } else { "False" }.to_owned(),
        reason: row.readiness.as_str().to_owned(),
        message,
        since: Timestamp(row.since_wall_ms),
    }
}
