//! Workload `prefixes`: prefixes are delegated and returned beside single addresses of the same pools.

use anyhow::Result;
use futures::future::{BoxFuture, FutureExt as _};
use ipam_api::client::Call;
use ipam_api::problem::Applied;
use ipam_api::request::{Delegated, PrefixReleased};
use ipam_api::resource::Prefix;
use serde_json::json;

use super::holdings::{Holdings, is_passing};
use super::requests::{Wanted, endpoint_of};
use super::resources::{Space, make_pool, make_subnet};
use super::session::add_detail;
use super::{Server, Session, Workload};
use crate::history::{Function, Grant, Value};

const NAME: &str = "prefixes";
/// Subnet and pool of the other family.
const NAME_6: &str = "prefixes-6";
const SPACE: Space = Space(7);
const SESSIONS: usize = 3;
/// Prefixes of one session.
const PREFIXES_MAX: usize = 6;
/// Single addresses of one session.
const SINGLES_MAX: usize = 4;
/// TTLs of prefixes that end by themselves, in milliseconds.
const TTL_MS: (usize, usize) = (3_000, 6_000);

/// Prefixes against single addresses.
pub(super) struct Prefixes;

impl Workload for Prefixes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "prefixes (/28 and /64, /30 and /80 inside) are delegated beside addresses of the same pools"
    }

    fn sessions(&self) -> usize {
        SESSIONS
    }

    fn functions(&self) -> &'static [Function] {
        &[Function::Delegate, Function::Return, Function::Allocate, Function::Release]
    }

    fn prepare<'a>(&'a self, admin: &'a dyn Server) -> BoxFuture<'a, Result<()>> {
        async move {
            make_subnet(admin, NAME, SPACE.ipv4_cidr()).await?;
            // Eight blocks, which single addresses at random places divide.
            let range = format!("{}/25", SPACE.ipv4(1, 0));
            let settings = json!({"ranges": [range], "strategy": "random"});
            make_pool(admin, NAME, NAME, settings).await?;
            make_subnet(admin, NAME_6, SPACE.ipv6_cidr()).await?;
            let range = format!("{}/61", SPACE.ipv6(0));
            make_pool(admin, NAME_6, NAME_6, json!({"ranges": [range], "strategy": "random"})).await
        }
        .boxed()
    }

    fn run(&self, session: Session) -> BoxFuture<'_, ()> {
        run(session).boxed()
    }
}

/// Arguments of a delegation.
#[derive(Debug, Clone)]
struct Order {
    pool: &'static str,
    /// Prefix from which the new prefix is cut, if that is not the pool.
    parent: Option<u64>,
    owner: String,
    length: u8,
    ttl_ms: Option<u64>,
}

/// Delegated prefix with the prefixes inside it.
#[derive(Debug)]
struct Delegation {
    order: Order,
    grant: Grant,
    inside: Vec<Grant>,
}

async fn run(mut session: Session) {
    let mut singles = Holdings::default();
    let mut prefixes: Vec<Delegation> = Vec::new();
    let mut doubtful: Vec<Order> = Vec::new();
    let mut count = 0_u64;
    while session.works() {
        count += 1;
        match session.random.below(12) {
            0..=3 if prefixes.len() < PREFIXES_MAX => {
                let order = new_order(&mut session, count);
                prefixes.extend(delegate(&mut session, &mut doubtful, order).await);
            }
            // A repeated delegation refreshes a prefix with a TTL, and shows a prefix with an unknown
            // outcome.
            4 => {
                let known = prefixes.first().map(|prefix| prefix.order.clone());
                if let Some(order) = doubtful.pop().or(known) {
                    let again = delegate(&mut session, &mut doubtful, order).await;
                    if let Some(again) = again
                        && !prefixes.iter().any(|known| known.grant.id == again.grant.id)
                    {
                        prefixes.push(again);
                    }
                }
            }
            5 => {
                let at = session.random.below(prefixes.len());
                if let Some(outer) = prefixes.get(at) {
                    let length = if outer.order.pool == NAME { 30 } else { 80 };
                    let (parent, pool) = (Some(outer.grant.id), outer.order.pool);
                    let owner = format!("{NAME}-{}-{count}", session.number);
                    let order = Order { pool, parent, owner, length, ttl_ms: None };
                    let inner = delegate(&mut session, &mut Vec::new(), order).await;
                    if let (Some(inner), Some(outer)) = (inner, prefixes.get_mut(at)) {
                        outer.inside.push(inner.grant);
                    }
                }
            }
            6..=7 if !prefixes.is_empty() => {
                let at = session.random.below(prefixes.len());
                let prefix = prefixes.swap_remove(at);
                prefixes.extend(give_back(&mut session, &mut doubtful, prefix).await);
            }
            8..=9 if singles.len() < SINGLES_MAX => {
                let endpoint = endpoint_of("machine", NAME, &format!("{}-{count}", session.number));
                let wanted =
                    if session.chance(50) { Wanted::one(endpoint, NAME) } else { single_6(endpoint) };
                let _ = singles.allocate(&mut session, &wanted).await;
            }
            10 => singles.clear_doubt(&mut session).await,
            _ => singles.release_one(&mut session).await,
        }
        session.rest().await;
    }
    let end = prefixes.len() / 2;
    let deadline = session.settle_deadline();
    for prefix in prefixes.drain(end..) {
        if !session.settles(deadline) {
            return;
        }
        let _ = give_back(&mut session, &mut doubtful, prefix).await;
    }
    singles.settle(&mut session, deadline).await;
}

fn single_6(endpoint: String) -> Wanted {
    let interfaces = vec![json!({"name": "eth0", "ipv6_pools": [NAME_6]})];
    Wanted { endpoint, interfaces, pools: vec![NAME_6.to_owned()], ..Wanted::default() }
}

fn new_order(session: &mut Session, count: u64) -> Order {
    let (pool, length) = if session.chance(60) { (NAME, 28) } else { (NAME_6, 64) };
    let ttl_ms = session.chance(20).then(|| session.between(TTL_MS.0, TTL_MS.1));
    let ttl_ms = ttl_ms.and_then(|ttl_ms| u64::try_from(ttl_ms).ok());
    Order { pool, parent: None, owner: format!("{NAME}-{}-{count}", session.number), length, ttl_ms }
}

/// Owner as the events of prefixes name it.
fn owner(order: &Order) -> Option<String> {
    Some(format!("default/{}", order.owner))
}

fn grant_of(prefix: &Prefix) -> Option<Grant> {
    Some(Grant {
        id: prefix.id,
        network: prefix.network.to_string(),
        address: prefix.cidr?.to_string(),
        pool: Some(prefix.pool.to_string()),
        endpoint: None,
    })
}

/// Delegates a prefix, or refreshes the prefix of the same owner.
async fn delegate(session: &mut Session, doubtful: &mut Vec<Order>, order: Order) -> Option<Delegation> {
    let mut body = json!({"owner": order.owner, "length": order.length});
    if let Some(body) = body.as_object_mut() {
        match order.parent {
            Some(parent) => body.insert("parent".to_owned(), parent.into()),
            None => body.insert("pool".to_owned(), order.pool.into()),
        };
        body.extend(order.ttl_ms.map(|ttl_ms| ("ttl_ms".to_owned(), ttl_ms.into())));
    }
    let (at, key) = (session.any_member(), session.maybe_key());
    let call = session.prepared(Call::post("/v1/prefixes").json(&body).ok()?, key.as_deref());
    let value = Value {
        key,
        endpoint: owner(&order),
        pools: vec![order.pool.to_owned()],
        ttl_ms: order.ttl_ms,
        detail: json!({"length": order.length, "parent": order.parent}),
        ..Value::default()
    };
    let done = |answer: &Delegated, value: &mut Value| {
        value.grants = grant_of(&answer.prefix).into_iter().collect();
        if answer.repeated {
            add_detail(value, "repeated", true.into());
        }
    };
    match session.call::<Delegated>(at, Function::Delegate, value, call, done).await {
        Ok(answer) => {
            let grant = grant_of(&answer.prefix)?;
            Some(Delegation { order, grant, inside: Vec::new() })
        }
        Err(problem) => {
            if problem.applied == Applied::Unknown && order.parent.is_none() {
                doubtful.push(order);
            }
            None
        }
    }
}

/// Returns a prefix with all prefixes inside it to the pool. The result is the prefix if it surely still
/// exists.
async fn give_back(
    session: &mut Session,
    doubtful: &mut Vec<Order>,
    prefix: Delegation,
) -> Option<Delegation> {
    let (at, key) = (session.any_member(), session.maybe_key());
    let call = Call::delete(format!("/v1/prefixes/{}", prefix.grant.id));
    let call = session.prepared(call, key.as_deref());
    let mut grants = vec![prefix.grant.clone()];
    grants.extend(prefix.inside.iter().cloned());
    let (endpoint, pools) = (owner(&prefix.order), vec![prefix.order.pool.to_owned()]);
    let value = Value { key, endpoint, pools, grants, ..Value::default() };
    let done = |answer: &PrefixReleased, value: &mut Value| {
        let freed: Vec<String> = answer.cidrs.iter().map(ToString::to_string).collect();
        value.grants.retain(|grant| freed.contains(&grant.address));
        add_detail(value, "addresses", freed.into());
        if answer.ending {
            add_detail(value, "ending", true.into());
        }
    };
    match session.call::<PrefixReleased>(at, Function::Return, value, call, done).await {
        Err(problem) if problem.applied == Applied::Unknown => {
            // A repeated delegation shows whether the prefix still exists, or delegates another one.
            doubtful.push(prefix.order);
            None
        }
        Err(problem) if is_passing(&problem) => Some(prefix),
        _ => None,
    }
}
