//! Workload `alloc-specific`: sessions compete for named addresses, each a register with compare-and-set.

use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;
use tokio::time::Instant;

use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "alloc-specific";
const SPACE: Space = Space(2);
/// Sessions that compete.
const SESSIONS: usize = 3;
/// Number of addresses for which they compete at a time.
const WINDOW: u64 = 6;
/// Time after which sessions continue with the next addresses. The search of a linearization is exponential
/// in the number of concurrent operations, and the history of each address stays short.
const WINDOW_TIME: Duration = Duration::from_secs(4);

/// Competition for single addresses.
pub(super) struct AllocSpecific;

impl Workload for AllocSpecific {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "sessions allocate, read and release the same few addresses by name (register with compare-and-set)"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release, Function::Read]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    let begun = Instant::now();
    let mut holdings = Holdings::default();
    let mut count = 0_u64;
    while session.works() {
        let address = address(&mut session, begun.elapsed());
        match session.random.below(10) {
            0..=3 => {
                // Each request has a new endpoint: an endpoint that requests a second address is refused or
                // moved.
                count += 1;
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                let wanted = Wanted::address(endpoint, NAME, &address);
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            4..=6 => holdings.release_one(&mut session).await,
            7 => holdings.clear_doubt(&mut session).await,
            _ => {
                let (at, is_stale) = (session.any_member(), session.chance(30));
                let _ = session.read_address(at, &address, is_stale).await;
            }
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

/// An address of the present window.
fn address(session: &mut Session, elapsed: Duration) -> String {
    let window = elapsed.as_millis().checked_div(WINDOW_TIME.as_millis()).unwrap_or_default();
    let window = u64::try_from(window).unwrap_or_default();
    let within =
        u64::try_from(session.random.below(usize::try_from(WINDOW).unwrap_or(1))).unwrap_or_default();
    let host = 1 + (window * WINDOW + within) % 60_000;
    let [.., third, fourth] = host.to_be_bytes();
    SPACE.ipv4(third, fourth).to_string()
}
