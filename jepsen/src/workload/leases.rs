//! Workload `leases`: short leases that their owners renew through outages, and others that expire.

use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::Code;
use ipam_api::problem::Applied;
use serde_json::json;
use tokio::time::Instant;

use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{At, Server, Session, Workload};
use crate::history::{Function, Grant};

const NAME: &str = "leases";
const SPACE: Space = Space(5);
const SESSIONS: usize = 3;
/// TTLs in milliseconds.
const TTL_MS: (usize, usize) = (2_000, 5_000);
/// Leases of a session, whether it renews them or not.
const LEASES_MAX: usize = 8;

/// Leases.
pub(super) struct Leases;

impl Workload for Leases {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "leases of 2 to 5 s are renewed by their owners through outages, or left to expire"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Renew, Function::Read]
    }

    fn is_cleaned_up(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            // The pool allocates the lowest free address, so that an expired address is soon allocated again.
            let settings = json!({"ranges": [SPACE.range(0, 1, 60)], "strategy": "sequential"});
            make_pool(admin, NAME, NAME, settings).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

/// Lease of a session.
struct Leased {
    endpoint: String,
    grants: Vec<Grant>,
    ttl_ms: u64,
    /// Time of the next renewal or, for a lease that is left to expire, of the next check.
    due: Instant,
    is_renewed: bool,
}

async fn run(mut session: Session) {
    let mut leases: Vec<Leased> = Vec::new();
    let mut count = 0_u64;
    while session.works() {
        let now = Instant::now();
        let due = leases.iter().position(|lease| lease.due <= now);
        if let Some(lease) = due.map(|at| leases.swap_remove(at)) {
            leases.extend(serve(&mut session, lease).await);
        } else if leases.len() < LEASES_MAX && session.chance(60) {
            count += 1;
            let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
            leases.extend(lease(&mut session, endpoint).await);
        } else if session.chance(5)
            && let Some(lease) = leases.pop()
        {
            let at = session.any_member();
            let _ = session.release_endpoint(at, &lease.endpoint, &lease.grants, None).await;
        }
        session.rest().await;
    }
    // All leases end soon; half of them end now.
    let end = leases.len() / 2;
    let deadline = session.settle_deadline();
    for lease in leases.drain(end..) {
        if !session.settles(deadline) {
            return;
        }
        let _ = session.release_endpoint(At::All, &lease.endpoint, &lease.grants, None).await;
    }
}

async fn lease(session: &mut Session, endpoint: String) -> Option<Leased> {
    let ttl_ms = u64::try_from(session.between(TTL_MS.0, TTL_MS.1)).unwrap_or_default();
    let wanted = Wanted { ttl_ms: Some(ttl_ms), ..Wanted::one(endpoint.clone(), NAME) };
    let (at, key) = (session.any_member(), session.maybe_key());
    let grants = session.allocate(at, &wanted, key.as_deref()).await.ok()?;
    let is_renewed = session.chance(60);
    let due = Instant::now() + wait(ttl_ms, is_renewed);
    Some(Leased { endpoint, grants, ttl_ms, due, is_renewed })
}

/// Time until the next renewal, a third of the TTL; a lease left to expire is checked after its TTL.
fn wait(ttl_ms: u64, is_renewed: bool) -> Duration {
    Duration::from_millis(if is_renewed { ttl_ms / 3 } else { ttl_ms + 500 })
}

/// Renews a lease, or checks one that is left to expire. Returns the lease if it may still exist.
async fn serve(session: &mut Session, mut lease: Leased) -> Option<Leased> {
    let at = session.any_member();
    if !lease.is_renewed && session.chance(70) {
        let address = lease.grants.first()?.address.clone();
        let _ = session.read_address(at, &address, false).await;
        return None;
    }
    let renewed = match session.random.below(10) {
        // A repeated request for a lease renews it, too.
        0..=1 => {
            let mut wanted = Wanted::one(lease.endpoint.clone(), NAME);
            wanted.ttl_ms = Some(lease.ttl_ms);
            session.allocate(at, &wanted, None).await.map(|grants| lease.grants = grants)
        }
        2..=4 => {
            let id = lease.grants.first()?.id;
            session.renew(at, &lease.endpoint, &lease.grants, Some(id), None).await.map(drop)
        }
        5 => {
            lease.ttl_ms = u64::try_from(session.between(TTL_MS.0, TTL_MS.1)).unwrap_or_default();
            let ttl_ms = Some(lease.ttl_ms);
            session.renew(at, &lease.endpoint, &lease.grants, None, ttl_ms).await.map(drop)
        }
        _ => session.renew(at, &lease.endpoint, &lease.grants, None, None).await.map(drop),
    };
    if renewed.as_ref().is_err_and(|problem| problem.applied == Applied::Unknown) {
        // A repeated request may have made a new allocation, even of the same address.
        lease.grants.clear();
    }
    match renewed {
        Ok(()) => lease.due = Instant::now() + wait(lease.ttl_ms, lease.is_renewed),
        Err(problem) if matches!(problem.code, Code::NotFound | Code::AllocationChanged) => return None,
        // The next step tries again: the cluster may be down.
        Err(_) => {}
    }
    Some(lease)
}
