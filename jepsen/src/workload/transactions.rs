//! Workload `transactions`: 2 to 200 steps, all or none, with preconditions.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::client::Call;
use serde_json::{Value as Json, json};

use super::batch::{Batch, Step};
use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet, revision_of};
use super::{Server, Session, Workload};
use crate::history::{Function, Grant};

const NAME: &str = "transactions";
const SPACE: Space = Space(13);
const SESSIONS: usize = 2;
/// Steps of a small and of a large transaction.
const SMALL: (usize, usize) = (2, 20);
const LARGE: (usize, usize) = (20, 200);
/// Addresses of one session. Both sessions together need more addresses than the pool has.
const HELD_MAX: usize = 220;

/// Transactions.
pub(super) struct Transactions;

impl Workload for Transactions {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "2 to 200 allocations and releases in one step, all or none, some with preconditions that fail"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Transaction]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            let ranges = [SPACE.range(0, 1, 200), SPACE.range(1, 1, 200)];
            make_pool(admin, NAME, NAME, json!({"ranges": ranges})).await
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
    // Allocation that surely no longer exists.
    let mut gone: Option<(String, Grant)> = None;
    while session.works() {
        let size = if session.chance(12) { LARGE } else { SMALL };
        let size = session.between(size.0, size.1);
        let mut batch = Batch::default();
        let mut released = None;
        for _ in 0..size {
            let is_release = session.chance(if holdings.len() > HELD_MAX { 80 } else { 45 });
            if is_release && let Some(mut holding) = holdings.take(&mut session) {
                if let Some(grant) = holding.grants.pop() {
                    released = Some((holding.endpoint.clone(), grant.clone()));
                    batch.steps.push(Step::Release(holding.endpoint, grant));
                }
            } else {
                count += 1;
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                batch.steps.push(Step::Allocate(Wanted::one(endpoint, NAME)));
            }
        }
        if session.chance(40) {
            batch.steps = in_bulk(batch.steps);
        }
        if session.chance(40) {
            batch.conditions.extend(condition(&mut session).await);
        }
        if session.chance(10) {
            // Conditions of other sessions on this pool fail from now on.
            let body = json!({"labels": {"count": count.to_string()}});
            let path = format!("/v1/pools/{NAME}");
            batch.steps.push(Step::Other(json!({"method": "PATCH", "path": path, "body": body})));
        }
        if session.chance(8)
            && let Some((endpoint, grant)) = gone.clone()
        {
            // This step is refused, and all others with it.
            batch.steps.push(Step::Release(endpoint, grant));
        }
        let steps = batch.steps.clone();
        match holdings.transact(&mut session, batch).await {
            None => gone = released.or(gone),
            Some(problem) if problem.applied == ipam_api::problem::Applied::No => {
                put_back(&mut holdings, steps, gone.as_ref());
            }
            Some(_) => {}
        }
        holdings.clear_doubt(&mut session).await;
        session.rest().await;
        // A transaction counts for many operations.
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

/// Returns the same steps with all allocations in one bulk, at the place of the first allocation.
fn in_bulk(steps: Vec<Step>) -> Vec<Step> {
    let (mut others, mut all, mut place) = (Vec::new(), Vec::new(), None);
    for step in steps {
        match step {
            Step::Allocate(wanted) => {
                place.get_or_insert(others.len());
                all.push(wanted);
            }
            other => others.push(other),
        }
    }
    if let Some(place) = place {
        others.insert(place, Step::AllocateMany(all));
    }
    others
}

/// Remembers the grants again that a refused transaction did not release.
fn put_back(holdings: &mut Holdings, steps: Vec<Step>, gone: Option<&(String, Grant)>) {
    for step in steps {
        if let Step::Release(endpoint, grant) = step
            && gone.is_none_or(|(_, gone)| gone.id != grant.id)
        {
            holdings.keep(endpoint, vec![grant]);
        }
    }
}

/// Precondition: the present revision of the pool, an old one, or the absence of this or another pool.
async fn condition(session: &mut Session) -> Option<Json> {
    let path = format!("/v1/pools/{NAME}");
    match session.random.below(6) {
        0 => Some(json!({"path": path, "absent": true})),
        1 => Some(json!({"path": "/v1/pools/transactions-absent", "absent": true})),
        choice => {
            let at = session.any_member();
            let pool: Json = session.look(at, Call::get(path.clone())).await.ok()?;
            let revision = revision_of(&pool)?;
            let revision = if choice <= 3 { revision.saturating_sub(1) } else { revision };
            Some(json!({"path": path, "revision": revision.to_string()}))
        }
    }
}
