//! Workload `admin`: pools are created, resized, cordoned and deleted while sessions allocate from them.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::client::{Call, Expect};
use serde_json::{Value as Json, json};

use super::holdings::Holdings;
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet, pool, revision_of};
use super::session::add_detail;
use super::{Server, Session, Workload};
use crate::history::{Function, Value};

const NAME: &str = "admin";
const SPACE: Space = Space(12);
const SESSIONS: usize = 3;
/// Number of pools that are created and deleted.
const POOLS: usize = 3;
/// Pool with few allocations: it is often empty and can be deleted.
const SELDOM: usize = POOLS - 1;
/// Addresses of a pool.
const SIZES: [u8; 4] = [8, 16, 32, 64];
const HELD_MAX: usize = 14;

/// Administration of pools.
pub(super) struct Admin;

impl Workload for Admin {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "pools are created, grown, shrunk, cordoned and deleted, with If-Match, while others use them"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Put, Function::Delete, Function::Allocate, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            for at in 0..POOLS {
                make_pool(admin, &pool_name(at), NAME, json!({"ranges": [range(at, 16)]})).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

fn pool_name(at: usize) -> String {
    format!("{NAME}-{at}")
}

fn range(at: usize, size: u8) -> String {
    SPACE.range(u8::try_from(at).unwrap_or_default(), 1, size)
}

async fn run(mut session: Session) {
    let mut holdings = Holdings::default();
    let mut count = 0_u64;
    while session.works() {
        let at = session.random.below(POOLS);
        match session.random.below(20) {
            0..=1 => resize(&mut session, at).await,
            2 => {
                let at = if session.chance(50) { SELDOM } else { at };
                create(&mut session, at).await;
            }
            3 => cordon(&mut session, at).await,
            4 | 7 => {
                let at = if session.chance(60) { SELDOM } else { at };
                delete(&mut session, at).await;
            }
            5 => reserve(&mut session, at).await,
            6 => holdings.clear_doubt(&mut session).await,
            8..=13 if holdings.len() < HELD_MAX => {
                count += 1;
                let at = if at == SELDOM && session.chance(80) { 0 } else { at };
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                let wanted = Wanted::one(endpoint, &pool_name(at));
                let _ = holdings.allocate(&mut session, &wanted).await;
            }
            _ => holdings.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

/// Grows or shrinks a pool; the precondition is its present revision, an old revision, or none.
async fn resize(session: &mut Session, at: usize) {
    let size = session.one_of(&SIZES).unwrap_or(16);
    let body = pool(&pool_name(at), NAME, json!({"ranges": [range(at, size)]}));
    let expect = expectation(session, at).await;
    write(session, Call::put(path(at)), at, Some(body), expect).await;
}

/// Creates a pool unless it exists.
async fn create(session: &mut Session, at: usize) {
    let size = session.one_of(&SIZES).unwrap_or(16);
    let body = pool(&pool_name(at), NAME, json!({"ranges": [range(at, size)]}));
    write(session, Call::put(path(at)), at, Some(body), Expect::Absent).await;
}

/// Disables or enables a pool.
async fn cordon(session: &mut Session, at: usize) {
    let body = json!({"disabled": session.chance(40)});
    let expect = expectation(session, at).await;
    write(session, Call::patch(path(at)), at, Some(body), expect).await;
}

/// Deletes a pool, which is refused while addresses are held.
async fn delete(session: &mut Session, at: usize) {
    let expect = expectation(session, at).await;
    write(session, Call::delete(path(at)), at, None, expect).await;
}

/// Reserves the first addresses of a pool, or deletes the reservation.
async fn reserve(session: &mut Session, at: usize) {
    let path = format!("/v1/reservations/{}", pool_name(at));
    let (call, body) = if session.chance(50) {
        let body = json!({"name": pool_name(at), "addresses": [range(at, 3)]});
        (Call::put(path), Some(body))
    } else {
        (Call::delete(path), None)
    };
    write(session, call, at, body, Expect::Anything).await;
}

fn path(at: usize) -> String {
    format!("/v1/pools/{}", pool_name(at))
}

async fn expectation(session: &mut Session, at: usize) -> Expect {
    if session.chance(40) {
        return Expect::Anything;
    }
    let member = session.any_member();
    match session.look::<Json>(member, Call::get(path(at))).await {
        Ok(pool) => {
            let revision = revision_of(&pool).unwrap_or_default();
            let is_old = session.chance(30);
            // Another session may change the pool during the pause.
            session.rest().await;
            Expect::Revision(if is_old { revision.saturating_sub(1) } else { revision })
        }
        Err(_) => Expect::Anything,
    }
}

/// Writes or deletes a resource. `detail` has the method, the precondition and the fields of the body.
async fn write(session: &mut Session, call: Call, at: usize, body: Option<Json>, expect: Expect) {
    let f = if call.method() == "DELETE" { Function::Delete } else { Function::Put };
    let target = call.path().trim_start_matches("/v1/").to_owned();
    let mut detail = json!({"method": call.method()});
    if let (Some(detail), Some(body)) = (detail.as_object_mut(), &body) {
        detail.insert("body".to_owned(), body.clone());
    }
    let call = match &body {
        Some(body) => call.json(body),
        None => Ok(call),
    };
    let Ok(call) = call else { return };
    let key = session.maybe_key();
    // A conditional write is not repeated.
    let call = session.prepared(call, key.as_deref()).expect(expect);
    let pools = if target.starts_with("pools/") { vec![pool_name(at)] } else { Vec::new() };
    let mut value = Value { key, pools, target: Some(target), detail, ..Value::default() };
    match expect {
        Expect::Anything => {}
        Expect::Absent => add_detail(&mut value, "if_none_match", "*".into()),
        Expect::Revision(revision) => add_detail(&mut value, "if_match", revision.into()),
    }
    let done = |answer: &Json, value: &mut Value| {
        if let Some(revision) = revision_of(answer) {
            add_detail(value, "etag", revision.into());
        }
    };
    let member = session.any_member();
    let _ = session.call::<Json>(member, f, value, call, done).await;
}
