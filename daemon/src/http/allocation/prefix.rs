//! `/v1/prefixes`: delegate, set, release.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::Target;
use ipam_api::name::Name;
use ipam_api::request::{
    self, DelegateRequest, Delegated, PrefixReleased, PrefixesSet, ReleasedPrefix, SetPrefixesRequest,
};
use ipam_api::resource::Prefix;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Delegate, ListedPrefix, PrefixLevel, PrefixSource, SetPrefixes, UnlistedPrefix};
use ipam_machine::{Action, Answer};

use super::prefix_list::{prefix, waiting};
use crate::http::list::id_in_path;
use crate::http::request::{ApiError, ApiResponse, Write};

pub(in crate::http) async fn delegate(write: Write) -> Result<ApiResponse<Delegated>, ApiError> {
    let action = action_of(write.read()?)?;
    let applied = write.propose(action).await?;
    let (status, body) = delegated(applied.answer, applied.revision)?;
    Ok(ApiResponse { status, ..ApiResponse::new(body, applied.revision) })
}

pub(in crate::http) fn action_of(request: DelegateRequest) -> Result<Action, Problem> {
    let DelegateRequest { pool, parent, realm, through, owner, length, keep_edges, ttl_ms, wait } = request;
    let from = source_of(pool, parent)?;
    let mut levels = levels_of(through);
    levels.push(PrefixLevel { owner, length, keep_edges, ttl_ms });
    let request = Delegate { from, realm, levels };
    Ok(if wait { Action::DelegateOrWait(request) } else { Action::Delegate(request) })
}

fn source_of(pool: Option<Name>, parent: Option<u64>) -> Result<PrefixSource, Problem> {
    match (pool, parent) {
        (Some(pool), None) => Ok(PrefixSource::Pool(pool)),
        (None, Some(parent)) => Ok(PrefixSource::Prefix(parent.into())),
        _ => {
            let detail = "a prefix is cut from a pool or from another prefix: name either `pool` or `parent`";
            Err(Problem::new(Code::ConflictingFields, detail).at("/pool"))
        }
    }
}

fn levels_of(levels: Vec<request::PrefixLevel>) -> Vec<PrefixLevel> {
    let level = |request::PrefixLevel { owner, length, keep_edges, ttl_ms }| PrefixLevel {
        owner,
        length,
        keep_edges,
        ttl_ms,
    };
    levels.into_iter().map(level).collect()
}

pub(in crate::http) fn delegated(answer: Answer, revision: u64) -> Result<(StatusCode, Delegated), Problem> {
    let (repeated, prefixes) = match answer {
        Answer::Delegated { repeated, prefixes } => (repeated, prefixes),
        Answer::PrefixPending { repeated, pending } => {
            let prefix = waiting(*pending).ok_or_else(other_answer)?;
            return Ok((StatusCode::ACCEPTED, Delegated { prefix, through: Vec::new(), repeated, revision }));
        }
        _ => return Err(other_answer()),
    };
    let mut through: Vec<Prefix> = prefixes.into_iter().map(prefix).collect();
    let prefix = through.pop().ok_or_else(other_answer)?;
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Delegated { prefix, through, repeated, revision }))
}

fn other_answer() -> Problem {
    Problem::new(Code::Internal, "the machine gave another answer than was asked for")
}

pub(in crate::http) async fn set(write: Write) -> Result<ApiResponse<PrefixesSet>, ApiError> {
    let action = list_of(write.read()?)?;
    let applied = write.propose(action).await?;
    Ok(ApiResponse::new(are_set(applied.answer, applied.revision)?, applied.revision))
}

pub(in crate::http) fn list_of(request: SetPrefixesRequest) -> Result<Action, Problem> {
    let SetPrefixesRequest { pool, parent, realm, prefixes } = request;
    let (from, prefixes) = (source_of(pool, parent)?, levels_of(prefixes));
    Ok(Action::SetPrefixes(SetPrefixes { from, realm, prefixes }))
}

pub(in crate::http) fn are_set(answer: Answer, revision: u64) -> Result<PrefixesSet, Problem> {
    let Answer::PrefixesSet { prefixes, released, ending } = answer else { return Err(other_answer()) };
    let listed = |listed| match listed {
        ListedPrefix::Delegated(given) => Ok(prefix(given)),
        ListedPrefix::Waiting(pending) => waiting(pending).ok_or_else(other_answer),
    };
    let prefixes = prefixes.into_iter().map(listed).collect::<Result<_, _>>()?;
    let left_out = |UnlistedPrefix { id, owner, cidr }| ReleasedPrefix { id: id.get(), owner, cidr };
    let released = released.into_iter().map(left_out).collect();
    Ok(PrefixesSet { prefixes, released, ending, revision })
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
