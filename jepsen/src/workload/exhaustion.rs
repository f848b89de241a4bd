//! Workload `exhaustion`: claims wait for a small pool, and are served by releases of other sessions.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::holdings::{Holding, Holdings};
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "exhaustion";
const SPACE: Space = Space(4);
const SESSIONS: usize = 3;
/// TTL of some claims, in milliseconds.
const TTL_MS: u64 = 3_000;
/// Claims of one session that wait or hold addresses: twice the pool with all sessions.
const CLAIMS_MAX: usize = 6;

/// Exhaustion and refill.
pub(super) struct Exhaustion;

impl Workload for Exhaustion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "claims wait for a pool of 9 addresses, are served by releases of others, or are withdrawn"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Claim, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 9)]})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    let mut holdings = Holdings::default();
    let mut waiting: Vec<String> = Vec::new();
    let mut count = 0_u64;
    while session.works() {
        let is_full = waiting.len() + holdings.len() >= CLAIMS_MAX;
        match session.random.below(20) {
            0..=7 if !is_full => {
                count += 1;
                let endpoint = endpoint_of("claim", NAME, &format!("{}-{count}", session.number));
                claim(&mut session, &mut holdings, &mut waiting, endpoint).await;
            }
            // A repetition shows whether the claim has been served.
            0..=13 if !waiting.is_empty() => {
                let at = session.random.below(waiting.len());
                let endpoint = waiting.swap_remove(at);
                claim(&mut session, &mut holdings, &mut waiting, endpoint).await;
            }
            14 => match waiting.pop() {
                Some(endpoint) => {
                    // A claim that was served meanwhile is released.
                    let holding = Holding { endpoint, grants: Vec::new() };
                    holdings.release(&mut session, holding, true).await;
                }
                None => holdings.clear_doubt(&mut session).await,
            },
            15..=17 => holdings.release_one(&mut session).await,
            _ if is_full && waiting.is_empty() => holdings.release_one(&mut session).await,
            _ => {}
        }
        session.rest().await;
    }
    // A claim that still waits would later be served by releases of other sessions.
    let end = waiting.len() / 2;
    let deadline = session.settle_deadline();
    for endpoint in waiting.drain(end..) {
        if !session.settles(deadline) {
            return;
        }
        let holding = Holding { endpoint, grants: Vec::new() };
        holdings.release(&mut session, holding, true).await;
    }
    holdings.settle(&mut session, deadline).await;
}

async fn claim(session: &mut Session, holdings: &mut Holdings, waiting: &mut Vec<String>, endpoint: String) {
    // Each repetition of a claim has the same TTL: some claims are leases, and their ends serve other claims.
    let ttl_ms = endpoint.ends_with('0').then_some(TTL_MS);
    let wanted = Wanted { waits: true, ttl_ms, ..Wanted::one(endpoint.clone(), NAME) };
    let at = session.any_member();
    match session.allocate(at, &wanted, None).await {
        Ok(grants) if grants.is_empty() => waiting.push(endpoint),
        Ok(grants) => holdings.keep(endpoint, grants),
        // The claim may wait, hold an address, or not exist: a repetition is the same claim.
        Err(_) => waiting.push(endpoint),
    }
}
