//! Allocation for a call, which waits for a conduit that is not there yet.
//!
//! Meridio's clients call before their conduit exists, and expect to wait.

use ipam_api::limits::{GRPC_CONDUIT_WAITS_MAX, GRPC_CONDUIT_WAITS_PER_CALLER_MAX};
use ipam_api::{Code, Problem};
use tokio::time::timeout_at;
use tonic::Status;

use crate::child::KnownChild;
use crate::places::Places;
use crate::prefixes::{Address, Client, Conduit, Prefixes};
use crate::servers::Servers;
use crate::status::status;

/// Allocates a child once its conduit is there.
///
/// # Errors
/// The refusal, and `DEADLINE_EXCEEDED` if no conduit of the name appeared in time.
pub(crate) async fn allocate(
    prefixes: &Prefixes<impl Servers>,
    waits: &Places,
    client: &Client,
    child: &KnownChild<'_>,
) -> Result<Address, Status> {
    let refused = |problem: Problem| status(&with_pool(problem, child));
    let mut conduits = prefixes.servers().conduits();
    let mut place = None;
    loop {
        // Changes from here on are noticed, so a conduit that appears after a refusal ends the wait.
        conduits.mark_unchanged();
        match prefixes.allocate(client, child).await {
            Err(problem) if problem.code == Code::NotFound => {}
            done => return done.map_err(refused),
        }
        if place.is_none() {
            place = Some(waits.try_take(&client.caller).ok_or_else(too_many)?);
        }
        // A conduit that itself waits for a block ends the call.
        is_present(prefixes, client, child).await?;
        loop {
            match timeout_at(client.deadline, conduits.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Status::unavailable("this member is stopping")),
                Err(_) => return Err(too_late(child)),
            }
            if is_present(prefixes, client, child).await? {
                break;
            }
        }
    }
}

fn too_many() -> Status {
    let (all, own) = (GRPC_CONDUIT_WAITS_MAX, GRPC_CONDUIT_WAITS_PER_CALLER_MAX);
    Status::resource_exhausted(format!(
        "too many calls wait for a conduit already: {own} of this caller, or {all} of all callers"
    ))
}

/// True if this member knows the conduit; false while it has never heard of it.
///
/// # Errors
/// The refusal, if the conduit itself waits for a free block.
async fn is_present(
    prefixes: &Prefixes<impl Servers>,
    client: &Client,
    child: &KnownChild<'_>,
) -> Result<bool, Status> {
    match prefixes.conduit(client, child).await {
        Ok(Conduit::Absent) => Ok(false),
        Ok(Conduit::Present) => Ok(true),
        Ok(Conduit::Waiting(why)) => Err(status(&with_pool(Problem::new(Code::PoolExhausted, why), child))),
        Err(problem) => Err(status(&problem)),
    }
}

/// Names the pool in a refusal that names only a prefix of it.
fn with_pool(mut problem: Problem, child: &KnownChild<'_>) -> Problem {
    let pool = child.family.pool.as_str();
    if problem.code == Code::PoolExhausted && !problem.detail.contains(pool) {
        problem.detail = format!("pool {pool}: {}", problem.detail);
    }
    problem
}

fn too_late(child: &KnownChild<'_>) -> Status {
    Status::deadline_exceeded(format!(
        "failed allocating ({}), ctx error: context deadline exceeded: no conduit {} appeared in time",
        child.path(),
        child.conduit
    ))
}
