//! Workload `alloc-any`: many writers allocate and release any address of one hot pool.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "alloc-any";
const SPACE: Space = Space(1);
/// Writers, as many as clients of a busy cluster.
const WRITERS: usize = 32;
/// Endpoints that one session holds at most. All sessions together need more addresses than the pool has.
const HELD_MAX: usize = 8;
/// Endpoint names that all sessions use.
const SHARED: usize = 12;

/// Writers of one pool with 253 addresses, which reuses the lowest free address at once.
pub(super) struct AllocAny;

impl Workload for AllocAny {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "32 writers allocate and release any address of one hot pool, some for the same endpoints"
    }

    fn sessions(&self) -> usize {
        WRITERS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            let settings = json!({"ranges": [SPACE.range(0, 1, 253)], "strategy": "sequential"});
            make_pool(admin, NAME, NAME, settings).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    let mut holdings = Holdings::default();
    let mut count = 0_u64;
    while session.works() {
        match session.random.below(10) {
            0 => holdings.clear_doubt(&mut session).await,
            _ if holdings.len() < session.between(1, HELD_MAX) => {
                count += 1;
                let name = if session.chance(10) {
                    format!("shared-{}", session.random.below(SHARED))
                } else {
                    format!("{}-{count}", session.number)
                };
                let wanted = Wanted::one(endpoint_of("machine", NAME, &name), NAME);
                // A refusal is recorded, and the next step is another one.
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            _ => holdings.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}
