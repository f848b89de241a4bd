//! `/v1/pools/{name}/split` and `/v1/pools/{name}/drain`: changes of pools with held addresses.

use axum::extract::Path;
use axum::response::Response;
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::name::{Name, ResourceName, shown};
use ipam_api::request::{DrainRequest, Drained, SplitRequest};
use ipam_api::{Code, Problem};
use ipam_machine::command::{Kind, SplitPool};
use ipam_machine::state::Occupant;
use ipam_machine::{Action, State};
use serde_json::{Map, Value};

use super::named::{merge_and_put, name_in_path, stored};
use super::pool::Pools;
use crate::http::convert::allocation;
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn split(Path(name): Path<String>, write: Write) -> Result<Response, ApiError> {
    let name = pool_in_path(name)?;
    let SplitRequest { into, ranges } = write.read()?;
    let split = SplitPool { name, into, ranges, expect: write.expect()? };
    let done = write.carry_out(Action::SplitPool(split)).await?;
    Ok(stored::<Pools>(&write, done).await?)
}

pub(in crate::http) async fn drain(
    Path(name): Path<String>,
    write: Write,
) -> Result<ApiResponse<Drained>, ApiError> {
    let name = pool_in_path(name)?;
    let DrainRequest { to } = write.read()?;
    let expect = write.expect()?;
    let change = Map::from_iter([("drains_to".to_owned(), Value::from(to.as_str()))]);
    let done = merge_and_put::<Pools>(&write, &ResourceName::from(&name), &change, expect).await?;
    let state = write.after(&done).await;
    Ok(ApiResponse::new(affected(&state, name, to), done.applied.revision))
}

fn pool_in_path(name: String) -> Result<Name, Problem> {
    let name = name_in_path(Kind::Pool, &name)?;
    let none = || Problem::new(Code::NotFound, format!("no pool can be called {}", shown(name.as_str())));
    name.name().ok_or_else(none)
}

/// Allocations in a drained pool, lowest address first.
fn affected(state: &State, pool: Name, to: Name) -> Drained {
    let id = state.id_of(Kind::Pool, &pool);
    let space = id.and_then(|id| state.space(id.into()));
    let network =
        id.and_then(|id| state.subnets.get(state.pools.get(id.into())?.subnet)).map(|row| row.network);
    let occupied = space.zip(network).into_iter().flat_map(|(space, network)| {
        space.allocatable.ranges().flat_map(move |range| state.occupied(network, range))
    });
    let held = occupied.filter_map(|(_, occupant)| match occupant {
        Occupant::Allocation(id) => allocation(state, id.get(), state.allocations.get(id)?),
        Occupant::Cooling(_) | Occupant::Quarantine(_) => None,
    });
    Drained {
        pool,
        to,
        held: space.map_or(0, |space| space.allocated),
        affected: held.take(PAGE_ITEMS_MAX).collect(),
        revision: state.revision(),
    }
}
