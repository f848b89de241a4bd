//! Workload `adopted`: addresses that endpoints have already are recorded, singly and by import.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::client::Call;
use serde_json::json;

use super::batch::{Batch, Step};
use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::{Server, Session, Workload};
use crate::history::Function;

const NAME: &str = "adopted";
const SPACE: Space = Space(15);
const SESSIONS: usize = 2;
/// Addresses that are adopted: half of them are reserved, so that no pool allocates them.
const ADDRESSES: usize = 120;
/// Addresses of one import.
const IMPORT: (usize, usize) = (2, 6);
const HELD_MAX: usize = 16;

/// Adoption of existing addresses.
pub(super) struct Adopted;

impl Workload for Adopted {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "existing addresses are recorded (adopt), singly and by import, released, and adopted by others"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release, Function::Transaction]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 120)]})).await?;
            let body = json!({"name": NAME, "addresses": [SPACE.range(0, 61, 120)]});
            let call = Call::put(format!("/v1/reservations/{NAME}")).json(&body)?;
            admin.send(call).await?;
            Ok(())
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
    let mut adoption = |session: &mut Session| {
        count += 1;
        let endpoint = endpoint_of("host", NAME, &format!("{}-{count}", session.number));
        let address = SPACE.ipv4(0, u8::try_from(1 + session.random.below(ADDRESSES)).unwrap_or(1));
        let wanted = Wanted::address(endpoint, NAME, &address.to_string());
        Wanted { adopts: true, detail: json!({"adopt": true}), ..wanted }
    };
    while session.works() {
        match session.random.below(10) {
            0..=2 if holdings.len() < HELD_MAX => {
                let wanted = adoption(&mut session);
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            // A session imports even with many holdings: an import is rare, and each run needs some under
            // faults.
            3 => {
                let size = session.between(IMPORT.0, IMPORT.1);
                let mut steps: Vec<Wanted> = (0..size).map(|_| adoption(&mut session)).collect();
                steps.sort_by(|one, other| one.target.cmp(&other.target));
                steps.dedup_by(|one, other| one.target == other.target);
                let steps = steps.into_iter().map(Step::Allocate).collect();
                holdings.transact(&mut session, Batch { steps, conditions: Vec::new() }).await;
            }
            // The same address for an endpoint that does not have it yet.
            4 => {
                let wanted = Wanted { adopts: false, detail: json!(null), ..adoption(&mut session) };
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            5 => holdings.clear_doubt(&mut session).await,
            _ => holdings.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}
