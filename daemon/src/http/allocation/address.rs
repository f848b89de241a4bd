//! `/v1/addresses/{ip}`: everything that is known of one address, in a pool or not.

use std::net::IpAddr;

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::address::{AddressRange, number, parse_address};
use ipam_api::resource::Address;
use ipam_api::{Code, Family, Problem};
use ipam_machine::State;
use ipam_machine::command::Kind;
use ipam_machine::state::Occupant;

use crate::http::convert::{allocation, network_name};
use crate::http::request::{AddressQuery, ApiError, ApiResponse, Read};

pub(in crate::http) async fn show(
    Path(ip): Path<String>,
    read: Read<AddressQuery>,
) -> Result<ApiResponse<Address>, ApiError> {
    let address = parse_address(&ip)?;
    let (state, stale_ms) = read.state_at((Verb::Read, Target::Address), read.query.consistency).await?;
    let network = state.id_of(Kind::Network, &read.query.network).ok_or_else(|| {
        Problem::new(Code::NotFound, format!("network {} does not exist", read.query.network))
    })?;
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(known(&state, network, address), state.revision()) })
}

fn known(state: &State, network: u64, address: IpAddr) -> Address {
    let subnet = state.subnet_at(network.into(), address);
    let owner = state.pool_at(network.into(), address);
    let occupant = state.occupant(network.into(), address);
    // An address that a pool excludes from its ranges is shown with that pool, if no other pool owns it.
    let covering = || {
        let (id, _) = subnet?;
        state
            .pools_of(id)
            .find(|pool| state.space(*pool).is_some_and(|space| space.ranges.contains(number(address))))
    };
    let pool = owner.or_else(covering);
    let space = pool.and_then(|id| state.space(id));
    let record =
        state.records_in(network.into(), AddressRange::single(address)).next().map(|(_, row)| &row.spec);
    let prefix = state.prefix_at(network.into(), address).and_then(|(id, _)| state.given_prefix(id));
    let word = match occupant {
        Some(Occupant::Allocation(_)) => "allocated",
        Some(Occupant::Cooling(_)) => "cooling",
        Some(Occupant::Quarantine(_)) => "quarantined",
        None if prefix.is_some() => "allocated",
        None if state.is_reserved(network.into(), address) => "reserved",
        None => match space {
            None => "unmanaged",
            Some(space) if owner.is_some() && space.free.is_free(number(address)) => "free",
            Some(_) => "excluded",
        },
    };
    let cooling_ms = match occupant {
        Some(Occupant::Cooling(id)) => {
            state.coolings.get(id).map(|row| row.until_ms.saturating_sub(state.log_time_ms()))
        }
        _ => None,
    };
    Address {
        address,
        network: network_name(state, network).unwrap_or_else(ipam_api::Name::default_name),
        subnet: subnet.map(|(_, row)| row.spec.name.clone()),
        pool: pool.and_then(|id| state.pools.get(id)).map(|row| row.spec.name.clone()),
        state: word.to_owned(),
        allocation: state
            .allocation_at(network.into(), address)
            .and_then(|(id, row)| allocation(state, id.get(), row)),
        prefix: prefix.map(super::prefix_list::prefix),
        cooling_ms,
        reservation: record
            .map(|record| record.name.clone())
            .or_else(|| reservation(state, network, address)),
        recorded_for: record.and_then(|record| record.endpoint.clone()),
        revision: state.revision(),
    }
}

/// Oldest reservation that covers an address.
fn reservation(state: &State, network: u64, address: IpAddr) -> Option<ipam_api::Name> {
    if !state.is_reserved(network.into(), address) {
        return None;
    }
    let covers = |range: &AddressRange| {
        range.family() == Family::of(address) && (range.first()..=range.last()).contains(&number(address))
    };
    state
        .reservations
        .iter()
        .find(|(_, row)| row.network == network.into() && row.spec.addresses.iter().any(covers))
        .map(|(_, row)| row.spec.name.clone())
}
