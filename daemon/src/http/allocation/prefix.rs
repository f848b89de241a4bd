//! `/v1/prefixes`: delegate, list, release.

use axum::extract::Path;
use axum::http::StatusCode;
use ipam_api::access::Target;
use ipam_api::request::{DelegateRequest, Delegated, PrefixReleased};
use ipam_api::resource::Prefix;
use ipam_api::{Code, Problem};
use ipam_machine::command::{Delegate, PrefixLevel, PrefixSource};
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
