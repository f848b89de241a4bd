//! Workload `churn`: allocations and releases in a pool that is 98 % full.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::batch::{Batch, Step};
use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "churn";
const SPACE: Space = Space(3);
/// Sessions, each with an equal share of the pool.
const SESSIONS: usize = 3;
/// Addresses that a session holds: with all sessions 147 of 150.
const SHARE: usize = 49;
/// Share of allocations beyond [`SHARE`], in percent: they exhaust the pool for a while.
const SURPLUS_PERCENT: usize = 45;
/// Addresses of one transaction while the pool is filled.
const FILL: usize = 12;

/// Churn in a nearly full pool.
pub(super) struct Churn;

impl Workload for Churn {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "sessions replace addresses of a pool that is 98 % full, and sometimes exhaust it"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 150)]})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    let mut holdings = Holdings::default();
    let mut count = 0_usize;
    let mut next = |session: &Session| {
        count += 1;
        Wanted::one(endpoint_of("machine", NAME, &format!("{}-{count}", session.number)), NAME)
    };
    while session.works() {
        let missing = SHARE.saturating_sub(holdings.len());
        if missing > FILL && session.chance(50) {
            let steps = (0..FILL).map(|_| Step::Allocate(next(&session))).collect();
            holdings.transact(&mut session, Batch { steps, conditions: Vec::new() }).await;
        } else if session.chance(10) {
            holdings.clear_doubt(&mut session).await;
        } else if missing > 0 || session.chance(SURPLUS_PERCENT) {
            let wanted = next(&session);
            let _ = holdings.allocate(&mut session, &wanted).await;
        } else {
            holdings.release_one(&mut session).await;
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}
