//! `/v1/pools`.

use std::net::{IpAddr, Ipv4Addr};

use ipam_api::Family;
use ipam_api::address::AddressRange;
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::resource::{Condition, IP_COLLISION, Pool, PoolStatus, Resource, TWO_STATIONS};
use ipam_api::time::Timestamp;
use ipam_machine::State;
use ipam_machine::command::{PoolSelectors, PoolSpec};
use ipam_machine::event::Readiness;
use ipam_machine::id::PoolId;
use ipam_machine::model::PoolState;
use ipam_machine::space::Space;
use ipnet::IpNet;

use super::named::{NamedResource, View, of_kind};
use crate::http::allocation::automatic::application;
use crate::http::convert::{conversions, meta, probing_in, probing_out};
use crate::http::list::{Row, Shape, without};

pub(in crate::http) struct Pools;

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/pools",
    own: &[
        Row::text("name", "name"),
        Row::text("network", "network"),
        Row::text("subnet", "subnet"),
        Row::address("cidr", "status.cidr").unshown(),
        Row::number("family", "status.family").unshown(),
        Row::shown(&["ranges", "exclude"]),
        Row::text("strategy", "strategy"),
        Row::number("cooling_ms", "cooling_ms"),
        Row::flag("strict_cooling", "strict_cooling"),
        Row::number("cooling_reserve", "cooling_reserve"),
        Row::flag("allow_edges", "allow_edges"),
        Row::address("gateway", "gateway"),
        Row::shown(&["routes"]),
        Row::flag("default", "default"),
        Row::shown(&["realms", "node_names", "node_selector", "namespaces", "namespace_selector"]),
        Row::text("endpoint_selector", "endpoint_selector"),
        Row::shown(&["network_attachments"]),
        Row::text("scale_down", "scale_down"),
        Row::flag("disabled", "disabled"),
        Row::flag("terminating", "terminating"),
        Row::text("drains_to", "drains_to"),
        Row::flag("reclaim", "reclaim"),
        Row::shown(&["probing"]),
        Row::text("application", "status.application.controller.name").unshown(),
        Row::shown(&["status", "status.revision", "status.family", "status.cidr", "status.counts"]),
        Row::number("size", "status.counts.size"),
        Row::number("allocated", "status.counts.allocated"),
        Row::number("cooling", "status.counts.cooling"),
        Row::number("quarantined", "status.counts.quarantined"),
        Row::number("reserved", "status.counts.reserved"),
        Row::number("excluded", "status.counts.excluded"),
        Row::number("free", "status.counts.free"),
        Row::shown(&["status.counts.saturated"]),
        Row::number("reserved_while_held", "status.reserved_while_held"),
        Row::text("ready", "status.conditions.0.reason").unshown(),
        Row::text("managed_by", "managed_by").unshown(),
        Row::shown(&["status.application", "status.conditions"]),
    ],
    named: true,
    addressed: true,
};

conversions! {
    Pool <=> PoolSpec {
        name, subnet, network, ranges, exclude, strategy, cooling_ms, strict_cooling, allow_edges, gateway,
        routes, default, scale_down, disabled, terminating, drains_to, reclaim,
        cooling_reserve, probing(probing_in, probing_out),
    }
    selectors: PoolSelectors {
        realms, node_names, node_selector, namespaces, namespace_selector, endpoint_selector,
        network_attachments,
    }
}

impl NamedResource for Pools {
    of_kind!(Pool, PoolStatus, pools, PutPool, |pool| (&pool.name).into());

    fn ranges(pool: &View<Self>) -> Vec<AddressRange> {
        let Pool { ranges, exclude, .. } = &pool.spec;
        let all = [AddressRange::of_cidr(pool.status.cidr)];
        without(if ranges.is_empty() { &all } else { ranges }, exclude)
    }

    fn view(state: &State, row: &Self::Row) -> View<Self> {
        let id = row.meta.id;
        let subnet = state.subnets.get(row.subnet).map(|subnet| &subnet.spec);
        let pool = &row.spec;
        let network = subnet.map(|subnet| subnet.network.clone());
        let spec = Pool { network, ..to_json(pool.clone()) };
        // A deleted pool is shown as it was stored, with empty counts, for a repetition of the request that
        // stored it.
        let cidr = subnet.map_or_else(|| first_of(pool), |subnet| subnet.cidr);
        let space = state.space(id.into());
        let ready = space.and_then(|space| state.pool_states.get(id.into()).map(|of| ready(of, pool, space)));
        let status = PoolStatus {
            revision: state.revision(),
            family: Family::of(cidr.addr()),
            cidr,
            counts: space.map(|space| space.counts().into()).unwrap_or_default(),
            reserved_while_held: space.map_or(0, |space| in_json(space.reserved_while_held())),
            application: row.automatic.as_deref().map(application),
            conditions: ready.into_iter().chain(collision(state, id.into())).collect(),
        };
        Resource { spec, meta: meta(&row.meta), status }
    }
}

/// Saturates a count at the largest integer of JSON.
fn in_json(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
}

/// Placeholder for a pool whose subnet is deleted.
fn first_of(pool: &PoolSpec) -> IpNet {
    let first = pool.ranges.first().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), AddressRange::first_address);
    IpNet::from(first)
}

/// `IPCollision` condition of the pool: addresses for which two stations answer. None without them.
fn collision(state: &State, pool: PoolId) -> Option<Condition> {
    let rows = state.collisions_of(pool).filter_map(|id| state.allocations.get(id));
    let addresses: Vec<String> = rows.take(COLLISIONS_NAMED + 1).map(|row| row.address.to_string()).collect();
    let since_wall_ms = state.pool_states.get(pool).map_or(0, |row| row.since_wall_ms);
    let rest = if addresses.len() > COLLISIONS_NAMED { " and more" } else { "" };
    let named = addresses.get(..addresses.len().min(COLLISIONS_NAMED)).unwrap_or_default().join(", ");
    (!addresses.is_empty()).then(|| Condition {
        kind: IP_COLLISION.to_owned(),
        status: "True".to_owned(),
        reason: TWO_STATIONS.to_owned(),
        message: format!("two stations answer for {named}{rest}; ipamctl allocation list -o wide shows both"),
        since: Timestamp(since_wall_ms),
    })
}

/// Maximum number of colliding addresses that the condition of a pool names.
const COLLISIONS_NAMED: usize = 3;

/// `Ready` condition of the pool.
fn ready(row: &PoolState, pool: &PoolSpec, space: &Space) -> Condition {
    let counts = space.counts();
    let message = match row.readiness {
        Readiness::Serving => String::new(),
        Readiness::Exhausted => format!("0 free of {}", counts.size),
        Readiness::Disabled => "gives nothing until it is enabled".to_owned(),
        Readiness::Terminating => format!("{} left", counts.allocated),
        Readiness::Drained => {
            let to = pool.drains_to.as_ref().map_or("another pool", |to| to.as_str());
            format!("{to} stands in for it; {} left", counts.allocated)
        }
        Readiness::Unconfirmed => "restored, and not confirmed: ipamctl cluster epoch".to_owned(),
    };
    Condition {
        kind: "Ready".to_owned(),
        status: if row.readiness == Readiness::Serving { "True" } else { "False" }.to_owned(),
        reason: row.readiness.as_str().to_owned(),
        message,
        since: Timestamp(row.since_wall_ms),
    }
}
