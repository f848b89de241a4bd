//! `/v1/pools/{name}/split` and `/v1/pools/{name}/drain`: changes of pools while their addresses are held.

use axum::Router;
use axum::extract::{Path, State as AppState};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use ipam_api::access::{Target, Verb};
use ipam_api::limits::PAGE_ITEMS_MAX;
use ipam_api::name::{Name, ResourceName, shown};
use ipam_api::request::{DrainRequest, Drained, SplitRequest};
use ipam_api::{Code, Problem};
use ipam_machine::command::{Expect, Kind, SplitPool, Via};
use ipam_machine::state::Occupant;
use ipam_machine::{Action, State};
use serde_json::{Map, Value};

use super::named::{Kinded as _, TRIES_MAX, merged, name_in_path, stored};
use super::pool::Pools;
use crate::http::convert::allocation;
use crate::http::request::propose::expect;
use crate::http::request::{App, Asked, Consistency, Done, NoQuery, Refused, Shown, Write};

pub(in crate::http) fn routes() -> Router<App> {
    Router::new().route("/v1/pools/{name}/split", post(split)).route("/v1/pools/{name}/drain", post(drain))
}

async fn split(
    AppState(app): AppState<App>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Response, Refused> {
    let name = pool_in_path(name)?;
    let SplitRequest { into, ranges } = write.read()?;
    let split = SplitPool { name, into, ranges, expect: expect(&headers)? };
    let done = app.carry_out(&write, Via::Http, Action::SplitPool(split)).await?;
    Ok(stored::<Pools>(&app, &write.asker, done).await?)
}

async fn drain(
    AppState(app): AppState<App>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(NoQuery {}): Asked<NoQuery>,
    write: Write,
) -> Result<Shown<Drained>, Refused> {
    let name = pool_in_path(name)?;
    let DrainRequest { to } = write.read()?;
    let expect = expect(&headers)?;
    let done = drained_to(&app, &write, &name, &to, expect).await?;
    let state = app.after(&write.asker, &done).await;
    Ok(Shown::new(affected(&state, name, to), done.applied.revision))
}

fn pool_in_path(name: String) -> Result<Name, Problem> {
    let name = name_in_path::<Pools>(&[name])?;
    let none = || Problem::new(Code::NotFound, format!("no pool can be called {}", shown(name.as_str())));
    name.name().ok_or_else(none)
}

/// Writes into a pool where it is drained to; once more if somebody else was faster.
async fn drained_to(
    app: &App,
    write: &Write,
    name: &Name,
    to: &Name,
    expect: Expect,
) -> Result<Done, Problem> {
    let change = Map::from_iter([("drains_to".to_owned(), Value::from(to.as_str()))]);
    let mut tries_left = TRIES_MAX;
    loop {
        let deed = (Verb::Write, Target::Pool);
        let (state, _) = app.read(&write.asker, deed, Consistency::Linearizable).await?;
        if let Some(done) = app.kept(write, &state)? {
            return Ok(done);
        }
        let (intention, read_at) = merged::<Pools>(&state, &ResourceName::from(name), change.clone())?;
        let expecting = if expect == Expect::Anything { Expect::Revision(read_at) } else { expect };
        tries_left -= 1;
        match app.carry_out(write, Via::Http, Pools::put(intention, expecting)).await {
            Err(problem)
                if problem.code == Code::RevisionMismatch && expect == Expect::Anything && tries_left > 0 => {
            }
            done => return done,
        }
    }
}

/// Whom it concerns that a pool is drained: all that still hold something of it, the lowest address first.
fn affected(state: &State, pool: Name, to: Name) -> Drained {
    let id = state.id_of(Kind::Pool, &pool);
    let space = id.and_then(|id| state.space(id.into()));
    let network =
        id.and_then(|id| state.subnets.get(state.pools.get(id.into())?.subnet)).map(|row| row.network);
    let occupied = space.zip(network).into_iter().flat_map(|(space, network)| {
        space.giveable.ranges().flat_map(move |range| state.occupied(network, range))
    });
    let held = occupied.filter_map(|(_, occupant)| match occupant {
        Occupant::Allocation(id) => allocation(state, id.get(), state.allocations.get(id)?),
        Occupant::Cooling(_) => None,
    });
    Drained {
        pool,
        to,
        held: space.map_or(0, |space| space.allocated),
        affected: held.take(PAGE_ITEMS_MAX).collect(),
        revision: state.revision(),
    }
}
