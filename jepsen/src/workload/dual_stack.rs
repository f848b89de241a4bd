//! Workload `dual-stack`: pairs of addresses on several interfaces, all or none.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "dual-stack";
/// Subnet and pool of the other family.
const NAME_6: &str = "dual-stack-6";
const SPACE: Space = Space(8);
const SESSIONS: usize = 2;
/// Endpoints of one session. All sessions with three interfaces each exhaust the IPv4 pool.
const HELD_MAX: usize = 8;

/// Dual-stack endpoints.
pub(super) struct DualStack;

impl Workload for DualStack {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "endpoints with one to three interfaces, each with addresses of both families; the IPv4 pool is small"
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
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 30)]})).await?;
            make_subnet(admin, NAME_6, SPACE.ipv6_cidr()).await?;
            let range = format!("{}-{}", SPACE.ipv6(1), SPACE.ipv6(0x2000));
            make_pool(admin, NAME_6, NAME_6, json!({"ranges": [range]})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

async fn run(mut session: Session) {
    // A release by id would divide pairs.
    let mut holdings = Holdings::whole();
    let mut count = 0_u64;
    while session.works() {
        match session.random.below(10) {
            0 => holdings.clear_doubt(&mut session).await,
            // More interfaces for an endpoint that has some: refused unless the endpoint has all of them.
            1 => {
                if let Some(holding) = holdings.take(&mut session) {
                    let endpoint = holding.endpoint.clone();
                    holdings.keep(holding.endpoint, holding.grants);
                    let wanted = wanted(endpoint, 3);
                    let _ = holdings.allocate(&mut session, &wanted).await;
                }
            }
            2..=6 if holdings.len() < HELD_MAX => {
                count += 1;
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                let wanted = wanted(endpoint, session.between(1, 3));
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            _ => holdings.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

fn wanted(endpoint: String, interfaces: usize) -> Wanted {
    let interface = |number| {
        json!({
            "name": format!("eth{number}"), "ipv4_pools": [NAME], "ipv6_pools": [NAME_6], "families": [4, 6],
        })
    };
    let detail = json!({"interfaces": interfaces, "families": [4, 6]});
    let pools = vec![NAME.to_owned(), NAME_6.to_owned()];
    let interfaces = (0..interfaces).map(interface).collect();
    Wanted { endpoint, interfaces, pools, detail, ..Wanted::default() }
}
