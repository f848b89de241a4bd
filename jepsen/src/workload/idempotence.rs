//! Workload `idempotence`: each write is sent one to three times with one key, to different members.

use std::time::Duration;

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use ipam_api::Problem;
use ipam_api::client::Call;
use ipam_api::problem::Applied;
use serde_json::json;
use tokio::time::Instant;

use super::batch::{Batch, Step};
use super::holdings::{Holding, Holdings};
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet, pool, revision_of};
use super::session::add_detail;
use super::{At, Server, Session, Workload};
use crate::history::{Function, Grant, Value};

const NAME: &str = "idempotence";
/// Pool whose specification is replaced.
const OTHER: &str = "idempotence-put";
const SPACE: Space = Space(9);
const SESSIONS: usize = 2;
/// Copies of a request.
const COPIES: usize = 3;
/// Longest delay of a copy that is sent later.
const LATER_MS: usize = 800;
/// Time in which all sessions use the same key for the same request.
const SHARED_KEY: Duration = Duration::from_millis(400);
const HELD_MAX: usize = 20;

/// Repeated requests.
pub(super) struct Idempotence;

impl Workload for Idempotence {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "each write is sent one to three times with its key to different members, some with another body"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Allocate, Function::Release, Function::Transaction, Function::Put]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            make_pool(admin, NAME, NAME, json!({"ranges": [SPACE.range(0, 1, 200)]})).await?;
            make_pool(admin, OTHER, NAME, other(0)).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

/// Settings of the pool that is replaced.
fn other(number: u64) -> serde_json::Value {
    json!({"ranges": [SPACE.range(1, 1, 9)], "labels": {"number": number.to_string()}})
}

/// A request that can be sent again.
#[derive(Debug, Clone)]
enum Request {
    Allocate(Wanted),
    /// Release by the name of the endpoint if true, else by the id of an allocation.
    Release(Holding, bool),
    Transaction(Batch),
    Put(u64),
}

async fn run(mut session: Session) {
    let begun = Instant::now();
    let mut copies: Vec<Session> = (0..COPIES).map(|_| session.fork()).collect();
    let mut holdings = Holdings::default();
    let mut count = 0_u64;
    while session.works() {
        count += 1;
        let name = |suffix: &str| endpoint_of("machine", NAME, suffix);
        let mut key = session.new_key();
        let request = match session.random.below(10) {
            0..=3 if holdings.len() < HELD_MAX => {
                let endpoint = if session.chance(15) {
                    // The other sessions send the same request with the same key at this time.
                    let time = begun.elapsed().as_millis().checked_div(SHARED_KEY.as_millis());
                    let number = time.unwrap_or_default();
                    key = format!("{NAME}-shared-{number}");
                    name(&format!("shared-{number}"))
                } else {
                    name(&format!("{}-{count}", session.number))
                };
                Request::Allocate(Wanted::one(endpoint, NAME))
            }
            4..=5 => {
                let step = |number| {
                    let endpoint = name(&format!("{}-{count}-{number}", session.number));
                    Step::Allocate(Wanted::one(endpoint, NAME))
                };
                Request::Transaction(Batch { steps: (0..2).map(step).collect(), conditions: Vec::new() })
            }
            6 => Request::Put(count),
            7 => {
                holdings.clear_doubt(&mut session).await;
                session.rest().await;
                continue;
            }
            _ => match holdings.take(&mut session) {
                Some(holding) => Request::Release(holding, session.chance(40)),
                None => {
                    session.rest().await;
                    continue;
                }
            },
        };
        send_copies(&mut session, &mut copies, &mut holdings, &request, &key).await;
        if session.chance(20) {
            send_changed(&mut session, &mut copies, &key, count).await;
        }
        session.rest().await;
    }
    let deadline = session.settle_deadline();
    holdings.settle(&mut session, deadline).await;
}

/// Sends one to three copies, at once or later, and remembers what the session holds afterwards.
async fn send_copies(
    session: &mut Session,
    copies: &mut [Session],
    holdings: &mut Holdings,
    request: &Request,
    key: &str,
) {
    let number = session.between(1, COPIES);
    let first_member = session.random.below(session.members());
    let is_later = session.chance(40);
    let sent = copies.iter_mut().take(number).enumerate().map(|(at, copy)| {
        let delay = if is_later && at > 0 { copy.random.below(LATER_MS) } else { 0 };
        let delay = Duration::from_millis(u64::try_from(delay).unwrap_or_default());
        async move {
            copy.pause(delay).await;
            send(copy, At::Member(first_member + at), request, key).await
        }
    });
    let answers = join_all(sent).await;
    let made = answers.iter().find_map(|answer| answer.as_ref().ok());
    let unknown =
        answers.iter().any(|answer| matches!(answer, Err(problem) if problem.applied == Applied::Unknown));
    match (request, made) {
        (Request::Allocate(wanted), Some(grants)) => holdings.keep(wanted.endpoint.clone(), grants.clone()),
        (Request::Allocate(wanted), None) if unknown => holdings.doubt(wanted.endpoint.clone()),
        (Request::Transaction(_), Some(grants)) => {
            for grant in grants {
                if let Some(endpoint) = grant.endpoint.clone() {
                    holdings.keep(endpoint, vec![Grant { endpoint: None, ..grant.clone() }]);
                }
            }
        }
        (Request::Transaction(batch), None) if unknown => {
            for step in &batch.steps {
                if let Step::Allocate(wanted) = step {
                    holdings.doubt(wanted.endpoint.clone());
                }
            }
        }
        (Request::Release(holding, _), None) if unknown => holdings.doubt(holding.endpoint.clone()),
        _ => {}
    }
}

/// Sends another request with a used key, which servers refuse.
async fn send_changed(session: &mut Session, copies: &mut [Session], key: &str, count: u64) {
    let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}-changed", session.number));
    let mut wanted = Wanted::one(endpoint, NAME);
    wanted.detail = json!({"changed": true});
    let at = session.any_member();
    if let Some(copy) = copies.first_mut() {
        let _ = copy.allocate(at, &wanted, Some(key)).await;
    }
}

async fn send(session: &mut Session, at: At, request: &Request, key: &str) -> Result<Vec<Grant>, Problem> {
    let key = Some(key);
    match request {
        Request::Allocate(wanted) => session.allocate(at, wanted, key).await,
        Request::Transaction(batch) => session.transact(at, batch, key).await,
        Request::Release(Holding { endpoint, grants }, true) => {
            session.release_endpoint(at, endpoint, grants, key).await.map(|_| Vec::new())
        }
        Request::Release(holding, false) => match holding.grants.first() {
            Some(grant) => session.release(at, &holding.endpoint, grant, key).await.map(|_| Vec::new()),
            None => Ok(Vec::new()),
        },
        Request::Put(number) => {
            let body = pool(OTHER, NAME, other(*number));
            let call = session.prepared(Call::put(format!("/v1/pools/{OTHER}")).json(&body)?, key);
            let (key, target) = (key.map(str::to_owned), Some(format!("pools/{OTHER}")));
            let detail = json!({"number": number});
            let value = Value { key, target, detail, ..Value::default() };
            let done = |answer: &serde_json::Value, value: &mut Value| {
                add_detail(value, "etag", revision_of(answer).into());
            };
            session.call(at, Function::Put, value, call, done).await.map(|_: serde_json::Value| Vec::new())
        }
    }
}
