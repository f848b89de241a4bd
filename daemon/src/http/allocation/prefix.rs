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
use ipam_machine::command::{Delegate, GivenPrefix, PrefixLevel, PrefixSource};
use ipam_machine::{Action, Answer, State};

use crate::http::list::{Listable, Row, Shape, Test, id_in_path};
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn delegate(write: Write) -> Result<ApiResponse<Delegated>, ApiError> {
    let to_command = to_command(write.read()?)?;
    let applied = write.propose(Action::Delegate(to_command)).await?;
    let (status, body) = delegated(applied.answer, applied.revision)?;
    Ok(ApiResponse { status, ..ApiResponse::new(body, applied.revision) })
}

pub(in crate::http) fn to_command(request: DelegateRequest) -> Result<Delegate, Problem> {
    let DelegateRequest { pool, parent, realm, through, owner, length, keep_edges, ttl_ms } = request;
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
    Ok(Delegate { from, realm, levels })
}

pub(in crate::http) fn delegated(answer: Answer, revision: u64) -> Result<(StatusCode, Delegated), Problem> {
    let other = || Problem::new(Code::Internal, "the machine gave another answer than was asked for");
    let Answer::Delegated { repeated, prefixes } = answer else { return Err(other()) };
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
        cidr: given.cidr,
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
        created_at: Timestamp(given.created_wall_ms),
        created_by: given.created_by.to_string(),
    }
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
        Row::shown(&["keep_edges", "ttl_ms"]),
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
        state.prefixes.len()
    }

    fn ids<'a>(state: &'a State, after: Option<u64>) -> Option<Box<dyn Iterator<Item = u64> + 'a>> {
        Some(Box::new(state.prefixes.iter_after(after.unwrap_or(0).into()).map(|(id, _)| id.get())))
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
                parents
                    .into_iter()
                    .flat_map(|parent| state.prefixes_below(parent.into()))
                    .map(u64::from)
                    .collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }

    fn item(state: &State, id: u64) -> Option<Prefix> {
        state.given_prefix(id.into()).map(prefix)
    }

    fn ranges(item: &Prefix) -> Vec<AddressRange> {
        vec![AddressRange::of_cidr(item.cidr)]
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
