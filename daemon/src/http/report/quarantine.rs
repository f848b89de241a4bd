//! `/v1/quarantines`: addresses that foreign hosts use.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::{Target, Verb};
use ipam_api::address::{AddressRange, parse_address};
use ipam_api::name::Name;
use ipam_api::probe::Quarantine;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::command::EndQuarantine;
use ipam_machine::model;
use ipam_machine::{Action, State};
use serde::Deserialize;

use crate::http::list::{Listable, Row, Shape};
use crate::http::request::{AddressQuery, ApiError, ApiResponse, Read, Write};

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/quarantines",
    own: &[
        Row::address("address", "address"),
        Row::text("network", "network"),
        Row::text("pool", "pool"),
        Row::text("mac", "mac"),
        Row::text("reported_by", "reported_by.name"),
        Row::text("confirmed_by", "confirmed_by.name"),
        Row::text("since", "since"),
        Row::text("heard_at", "heard_at"),
    ],
    named: false,
    addressed: true,
};

/// Quarantines, the oldest first.
pub(in crate::http) struct Quarantines;

impl Listable for Quarantines {
    type Item = Quarantine;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Quarantine
    }

    fn total(state: &State) -> usize {
        state.quarantines.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        Some(Box::new(state.quarantines.iter_after(after.unwrap_or(0).into()).map(|(id, _)| id.get())))
    }

    fn item(state: &State, id: u64) -> Option<Quarantine> {
        shown(state, state.quarantines.get(id.into())?)
    }

    fn ranges(item: &Quarantine) -> Vec<AddressRange> {
        vec![AddressRange::single(item.address)]
    }
}

fn shown(state: &State, row: &model::Quarantine) -> Option<Quarantine> {
    Some(Quarantine {
        network: state.networks.get(row.network)?.spec.name.clone(),
        address: row.address,
        pool: state.pools.get(row.pool)?.spec.name.clone(),
        mac: row.mac,
        reported_by: row.reported_by.clone(),
        confirmed_by: row.confirmed_by.clone(),
        since: Timestamp(row.since_wall_ms),
        heard_at: Timestamp(row.heard_wall_ms),
    })
}

pub(in crate::http) async fn show(
    Path(ip): Path<String>,
    read: Read<AddressQuery>,
) -> Result<ApiResponse<Quarantine>, ApiError> {
    let (network, address) = (&read.query.network, parse_address(&ip)?);
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Quarantine), read.query.consistency).await?;
    let found = state.quarantine_at(network, address).and_then(|(_, row)| shown(&state, row));
    let found = found.ok_or_else(|| {
        Problem::new(Code::NotFound, format!("{address} of network {network} is not quarantined"))
    })?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(found, state.revision()) })
}

/// Parameters of the end of a quarantine.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct EndQuery {
    #[serde(default)]
    network: Name,
}

pub(in crate::http) async fn end(
    Path(ip): Path<String>,
    write: Write<EndQuery>,
) -> Result<StatusCode, ApiError> {
    let of = EndQuarantine { network: write.query.network.clone(), address: parse_address(&ip)? };
    write.propose(Action::EndQuarantine(of)).await?;
    Ok(StatusCode::NO_CONTENT)
}
