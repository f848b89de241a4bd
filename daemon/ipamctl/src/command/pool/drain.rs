//! `pool split` and `pool drain`: changes while addresses are held.

use clap::Args;
use ipam_api::client::Call;
use ipam_api::request::{DrainRequest, Drained, SplitRequest};
use ipam_api::resource::Pool;
use ipam_api::{AddressRange, Name};

use crate::client::requests::Again;
use crate::client::resource_type::Read;
use crate::client::session::Session;
use crate::client::{confirm, resource};
use crate::output::error::Failure;
use crate::output::table::Table;
use crate::output::text;

/// Arguments of `split`.
#[derive(Debug, Args)]
pub(crate) struct SplitArguments {
    /// Name
    name: Name,
    /// Name of the new pool
    #[arg(long, value_name = "NAME")]
    into: Name,
    /// Range to move; may be repeated
    #[arg(long = "range", value_name = "RANGE", required = true)]
    ranges: Vec<AddressRange>,
}

/// Arguments of `drain`.
#[derive(Debug, Args)]
pub(crate) struct DrainArguments {
    /// Name
    name: Name,
    /// Pool that takes over new requests
    #[arg(long, value_name = "POOL")]
    to: Name,
}

/// Splits a pool.
pub(crate) async fn split(session: &Session, arguments: SplitArguments) -> Result<(), Failure> {
    let SplitArguments { name, into, ranges } = arguments;
    session.check_named("pool", "pools", name.as_str()).await?;
    let request = SplitRequest { into: into.clone(), ranges };
    let call = Call::post(format!("/v1/pools/{name}/split")).json(&request)?;
    let answer = session.write(call, Again::ByKey).await;
    let answer = resource::suggest(session, answer, "pools", name.as_str()).await?;
    let sentence =
        format!("pool {name} {}: new pool {into}{}", session.tense("split"), session.at_revision(&answer));
    session.done(&answer, into.as_str(), &sentence)
}

/// Drains a pool to another one.
pub(crate) async fn drain(session: &Session, arguments: DrainArguments) -> Result<(), Failure> {
    let DrainArguments { name, to } = arguments;
    let (pool, _) = resource::fetch::<Pool>(session, &name).await?;
    let already = pool.spec.drains_to.as_ref() == Some(&to);
    if !already {
        let then =
            format!("It stops allocating; endpoints get an address from {to} with their next request.");
        confirm_in_use(session, &pool, &then, "Drain it anyway?").await?;
    }
    let call = Call::post(format!("/v1/pools/{name}/drain")).json(&DrainRequest { to: to.clone() })?;
    let answer = session.write(call, Again::ByKey).await;
    let answer = resource::suggest(session, answer, "pools", name.as_str()).await?;
    let drained: Drained = answer.read()?;
    if session.format.is_for_people() && !drained.affected.is_empty() {
        session.print(&table(&drained).render(session.headers, session.environment.width))?;
    }
    let left = text::plural(drained.held, "address is", "addresses are");
    let sentence = if already {
        format!("pool {name} is already drained to {to}; nothing was changed; {left} held in it")
    } else {
        let tense = session.tense("drained");
        format!(
            "pool {name} {tense} to {to}; {left} held in it, and each endpoint moves with its next request"
        )
    };
    session.done(&answer, name.as_str(), &sentence)
}

fn table(drained: &Drained) -> Table {
    Table::of(&drained.affected)
        .text("ADDRESS", |one| one.address.addr())
        .text("HOLDER", |one| &one.endpoint)
        .spare("INTERFACE", 2, |one| &one.interface)
        .text("NODE", |one| text::or_dash(one.node.as_ref()))
        .text("LIFECYCLE", |one| one.lifecycle)
        .spare("ALLOCATION", 3, |one| one.id)
        .table()
}

/// Asks for confirmation before a pool in use stops allocating. `then` states what happens to its addresses.
pub(super) async fn confirm_in_use(
    session: &Session,
    pool: &Read<Pool>,
    then: &str,
    question: &str,
) -> Result<(), Failure> {
    let (name, held) = (&pool.spec.name, pool.status.counts.allocated);
    if held == 0 {
        return Ok(());
    }
    let held = text::plural(held, "address is", "addresses are");
    let summary = [format!("pool {name} is in use: {held} held."), then.to_owned()];
    confirm::moderate(session, &summary, question).await
}
