//! Maps of pools, subnets and networks, and holders of a pool's addresses. The page size bounds the cost of
//! each request.

use std::net::IpAddr;

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::address::{number, parse_address};
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::shown;
use ipam_api::resource::{AddressMap, AddressRun, Holders, NamespaceHolds, NetworkMap, SubnetSums};
use ipam_api::{Code, Family, Problem};
use ipam_machine::State;
use ipam_machine::command::Kind;
use ipam_machine::map::{MapPage, Run, Standing, Wanted};
use serde::Deserialize;

use super::named::{name_in_path, unknown};
use crate::http::request::{ApiError, ApiResponse, Consistency, Read, page_limit};

/// Query parameters of a map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct MapQuery {
    from: Option<String>,
    limit: Option<usize>,
    state: Option<String>,
    consistency: Option<Consistency>,
    at_least_revision: Option<u64>,
}

impl MapQuery {
    fn wanted(&self, family: Family) -> Result<Wanted, Problem> {
        let from = self.from()?;
        if let Some(from) = from.filter(|from| Family::of(*from) != family) {
            let detail = format!("from is {from}, and what is asked for is {family}");
            return Err(Problem::new(Code::FamilyMismatch, detail));
        }
        let only = self.state.as_deref().map(standing).transpose()?;
        Ok(Wanted { from: from.map_or(0, number), limit: page_limit(self.limit)?, only })
    }

    fn from(&self) -> Result<Option<IpAddr>, Problem> {
        self.from.as_deref().map(parse_address).transpose()
    }
}

/// Query parameters of a network's map.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NetworkMapQuery {
    from: Option<String>,
    limit: Option<usize>,
    consistency: Option<Consistency>,
    at_least_revision: Option<u64>,
}

/// Query parameters of holders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct HoldersQuery {
    limit: Option<usize>,
    consistency: Option<Consistency>,
    at_least_revision: Option<u64>,
}

fn standing(word: &str) -> Result<Standing, Problem> {
    let known = Standing::ALL.into_iter().find(|standing| standing.as_str() == word);
    known.ok_or_else(|| {
        let states = Standing::ALL.map(Standing::as_str).join(", ");
        Problem::new(Code::InvalidFilter, format!("{} is not a state of addresses", shown(word)))
            .help(format!("The states are {states}."))
    })
}

pub(in crate::http) async fn of_pool(
    Path(name): Path<String>,
    read: Read<MapQuery>,
) -> Result<ApiResponse<AddressMap>, ApiError> {
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Pool), freshness).await?;
    let id = find(&state, Kind::Pool, &name)?;
    let family = state.space(id.into()).map_or(Family::V4, |space| space.family);
    let page = state.map_of_pool(id.into(), read.query.wanted(family)?).unwrap_or_default();
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(map(&state, family, &page), state.revision()) })
}

pub(in crate::http) async fn of_subnet(
    Path(name): Path<String>,
    read: Read<MapQuery>,
) -> Result<ApiResponse<AddressMap>, ApiError> {
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Subnet), freshness).await?;
    let id = find(&state, Kind::Subnet, &name)?;
    let family = state.subnets.get(id.into()).map_or(Family::V4, |row| Family::of(row.spec.cidr.addr()));
    let page = state.map_of_subnet(id.into(), read.query.wanted(family)?).unwrap_or_default();
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(map(&state, family, &page), state.revision()) })
}

pub(in crate::http) async fn of_network(
    Path(name): Path<String>,
    read: Read<NetworkMapQuery>,
) -> Result<ApiResponse<NetworkMap>, ApiError> {
    let from = read.query.from.as_deref().map(parse_address).transpose()?;
    let limit = page_limit(read.query.limit)?;
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Network), freshness).await?;
    let id = find(&state, Kind::Network, &name)?;
    let mut subnets = state.subnets_from(id.into(), from).filter_map(|id| Some((id, state.subnets.get(id)?)));
    let items = subnets.by_ref().take(limit).map(|(id, row)| SubnetSums {
        subnet: row.spec.name.clone(),
        cidr: row.spec.cidr,
        pools: state.pools_of(id).count() as u64,
        counts: state.counts_of_subnet(id).into(),
    });
    let items = items.collect();
    let next = subnets.next().map(|(_, row)| row.spec.cidr.network());
    let body = NetworkMap { items, revision: state.revision(), next };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(body, state.revision()) })
}

pub(in crate::http) async fn holders(
    Path(name): Path<String>,
    read: Read<HoldersQuery>,
) -> Result<ApiResponse<Holders>, ApiError> {
    let limit = page_limit(read.query.limit)?;
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Allocation), freshness).await?;
    let found = state.holders_of(find(&state, Kind::Pool, &name)?.into()).unwrap_or_default();
    let namespaces = found.namespaces.len() as u64;
    let first = found.namespaces.into_iter().take(limit);
    let body = Holders {
        items: first
            .map(|(realm, namespace, allocated)| NamespaceHolds { realm, namespace, allocated })
            .collect(),
        namespaces,
        counted: found.counted,
        complete: found.complete,
        revision: state.revision(),
    };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(body, state.revision()) })
}

fn find(state: &State, kind: Kind, name: &str) -> Result<u64, Problem> {
    let name = name_in_path(kind, name)?;
    state.id_of(kind, &name).ok_or_else(|| unknown(state, kind, &name))
}

fn map(state: &State, family: Family, page: &MapPage) -> AddressMap {
    AddressMap {
        items: page.runs.iter().map(|run| item(state, family, run)).collect(),
        revision: state.revision(),
        next: page.next.map(|next| family.address(next)),
    }
}

fn item(state: &State, family: Family, run: &Run) -> AddressRun {
    let size = (run.last - run.first).saturating_add(1);
    AddressRun {
        first: family.address(run.first),
        last: family.address(run.last),
        size: u64::try_from(size).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX),
        state: run.standing.as_str().to_owned(),
        pool: run.pool.and_then(|id| state.pools.get(id)).map(|row| row.spec.name.clone()),
        reserved_while_held: run.reserved,
    }
}
