//! `/v1/prefixes`: delegate, list, release.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::Target;
use ipam_api::address::AddressRange;
use ipam_api::name::ObjectName;
use ipam_api::request::{DelegateRequest, Delegated, PrefixReleased};
use ipam_api::resource::Prefix;
use ipam_api::time::Timestamp;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Delegate, GivenPrefix, PendingPrefix, PrefixLevel, PrefixSource};
use ipam_machine::{Action, Answer, State};

use crate::http::convert::waits;
use crate::http::list::{Listable, Row, Shape, Test, id_in_path};
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn delegate(write: Write) -> Result<ApiResponse<Delegated>, ApiError> {
    let action = action_of(write.read()?)?;
    let applied = write.propose(action).await?;
    let (status, body) = delegated(applied.answer, applied.revision)?;
    Ok(ApiResponse { status, ..ApiResponse::new(body, applied.revision) })
}

pub(in crate::http) fn action_of(request: DelegateRequest) -> Result<Action, Problem> {
    let DelegateRequest { pool, parent, realm, through, owner, length, keep_edges, ttl_ms, wait } = request;
    let from = match (pool, parent) {
        (Some(pool), None) => PrefixSource::Pool(pool),
        (None, Some(parent)) => PrefixSource::Prefix(parent.into()),
        _ => {
            let detail = "a prefix is cut from a pool or from another prefix: name either `pool` or `parent`";
            return Err(Problem::new(Code::ConflictingFields, detail).at("/pool"));
        }
    };
    let mut levels: Vec<PrefixLevel> = through
        .into_iter()
        .map(|level| PrefixLevel {
            owner: level.owner,
            length: level.length,
            keep_edges: level.keep_edges,
            ttl_ms: level.ttl_ms,
        })
        .collect();
    levels.push(PrefixLevel { owner, length, keep_edges, ttl_ms });
    let request = Delegate { from, realm, levels };
    Ok(if wait { Action::DelegateOrWait(request) } else { Action::Delegate(request) })
}

pub(in crate::http) fn delegated(answer: Answer, revision: u64) -> Result<(StatusCode, Delegated), Problem> {
    let other = || Problem::new(Code::Internal, "the machine gave another answer than was asked for");
    let (repeated, prefixes) = match answer {
        Answer::Delegated { repeated, prefixes } => (repeated, prefixes),
        Answer::PrefixPending { repeated, pending } => {
            let prefix = waiting(*pending).ok_or_else(other)?;
            return Ok((StatusCode::ACCEPTED, Delegated { prefix, through: Vec::new(), repeated, revision }));
        }
        _ => return Err(other()),
    };
    let mut through: Vec<Prefix> = prefixes.into_iter().map(prefix).collect();
    let prefix = through.pop().ok_or_else(other)?;
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Delegated { prefix, through, repeated, revision }))
}

/// As HTTP shows it.
pub(in crate::http) fn prefix(given: GivenPrefix) -> Prefix {
    let path: Vec<&str> = given.path.iter().map(ObjectName::as_str).collect();
    Prefix {
        id: given.id.get(),
        cidr: Some(given.cidr),
        length: None,
        network: given.network,
        subnet: given.subnet,
        pool: given.pool,
        parent: given.parent.map(u64::from),
        realm: given.realm,
        path: path.join("/"),
        owner: given.owner,
        keep_edges: given.keep_edges,
        ttl_ms: given.ttl_ms,
        ends_in_ms: given.ends_in_ms,
        children: given.children,
        waiting: None,
        created_at: Timestamp(given.created_wall_ms),
        created_by: given.created_by.to_string(),
    }
}

/// A waiting request as HTTP shows it; none without an owner, which no request lacks.
fn waiting(pending: PendingPrefix) -> Option<Prefix> {
    let path: Vec<&str> = pending.path.iter().map(ObjectName::as_str).collect();
    Some(Prefix {
        id: pending.claim.get(),
        cidr: None,
        length: pending.length,
        network: pending.network,
        subnet: pending.subnet,
        pool: pending.pool,
        parent: pending.parent.map(u64::from),
        realm: pending.realm,
        owner: pending.path.last()?.clone(),
        path: path.join("/"),
        keep_edges: pending.keep_edges,
        ttl_ms: pending.ttl_ms,
        ends_in_ms: None,
        children: 0,
        waiting: Some(waits(pending.why, &pending.cause, pending.since_wall_ms)),
        created_at: Timestamp(pending.since_wall_ms),
        created_by: pending.created_by.to_string(),
    })
}

/// Fields, filters and orders of the list.
pub(in crate::http) const SHAPE: Shape = Shape {
    path: "/v1/prefixes",
    own: &[
        Row::number("id", "id"),
        Row::address("cidr", "cidr"),
        Row::text("network", "network"),
        Row::text("subnet", "subnet"),
        Row::text("pool", "pool"),
        Row::number("parent", "parent"),
        Row::text("realm", "realm"),
        Row::text("owner", "owner"),
        Row::text("path", "path"),
        Row::shown(&["keep_edges", "ttl_ms", "length", "waiting"]),
        Row::number("ends_in_ms", "ends_in_ms"),
        Row::number("children", "children"),
        Row::text("created_at", "created_at"),
        Row::text("created_by", "created_by"),
    ],
    named: false,
    addressed: true,
};

/// Prefixes, the oldest first.
pub(in crate::http) struct Prefixes;

impl Listable for Prefixes {
    type Item = Prefix;
    const SHAPE: &'static Shape = &SHAPE;

    fn target() -> Target {
        Target::Prefix
    }

    fn total(state: &State) -> usize {
        state.prefixes.len() + state.prefix_claims.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        let after = after.unwrap_or(0);
        let mut prefixes = state.prefixes.iter_after(after.into()).map(|(id, _)| id.get()).peekable();
        let mut claims = state.prefix_claims.iter_after(after.into()).map(|(id, _)| id.get()).peekable();
        Some(Box::new(std::iter::from_fn(move || match (prefixes.peek(), claims.peek()) {
            (Some(prefix), Some(claim)) if claim < prefix => claims.next(),
            (None, _) => claims.next(),
            _ => prefixes.next(),
        })))
    }

    fn narrowed(state: &State, tests: &[Test]) -> Option<Vec<u64>> {
        let mut ids: Vec<u64> = match tests.iter().find_map(Test::address) {
            Some(address) => {
                let networks = state.networks.iter().map(|(id, _)| id);
                let smallest = networks.filter_map(|network| state.prefix_at(network, address));
                smallest.flat_map(|(id, _)| state.prefix_chain(id)).map(u64::from).collect()
            }
            None => {
                let parents = tests.iter().find_map(|test| test.numbers("parent"))?;
                let below = |parent: u64| {
                    let claims = state.prefix_claims_from(parent.into()).map(u64::from);
                    state.prefixes_below(parent.into()).map(u64::from).chain(claims)
                };
                parents.into_iter().flat_map(below).collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }

    fn item(state: &State, id: u64) -> Option<Prefix> {
        match state.given_prefix(id.into()) {
            Some(given) => Some(prefix(given)),
            None => waiting(state.pending_prefix(id.into())?),
        }
    }

    fn ranges(item: &Prefix) -> Vec<AddressRange> {
        item.cidr.into_iter().map(AddressRange::of_cidr).collect()
    }
}

pub(in crate::http) async fn release(
    Path(id): Path<String>,
    write: Write,
) -> Result<ApiResponse<PrefixReleased>, ApiError> {
    let action = Action::ReleasePrefix { id: id_in_path(Target::Prefix, &id)?.into() };
    let applied = write.propose(action).await?;
    Ok(ApiResponse::new(released(applied.answer, applied.revision), applied.revision))
}

pub(in crate::http) fn released(answer: Answer, revision: u64) -> PrefixReleased {
    match answer {
        Answer::PrefixReleased { cidrs, ending } => PrefixReleased { cidrs, ending, revision },
        _ => PrefixReleased { cidrs: Vec::new(), ending: false, revision },
    }
}
