//! `/v1/endpoints/…/configuration/{format}`: addresses of an endpoint as files of a network manager.

use axum::extract::Path;
use ipam_api::access::{Target, Verb};
use ipam_api::render::{Format, HostConfiguration, render};
use ipam_api::{Code, Problem};

use super::endpoint;
use crate::http::request::{ApiError, ApiResponse, Read};

pub(in crate::http) async fn show(
    Path((kind, realm, namespace, name, format)): Path<(String, String, String, String, String)>,
    read: Read,
) -> Result<ApiResponse<HostConfiguration>, ApiError> {
    let format: Format = format.parse().map_err(|problem: Problem| not_found(problem.detail))?;
    let key = endpoint::key((kind, realm, namespace, name))?;
    let (state, stale_ms) = read.state((Verb::Read, Target::Endpoint)).await?;
    read.app.check_own_host(&read.caller, &state, &key)?;
    let view = endpoint::newest(&state, &key)?;
    let files = render(format, &view.status.interfaces)
        .map_err(|error| Problem::new(Code::NotRenderable, format!("{key} as {format}: {error}")))?;
    let body = HostConfiguration { files, revision: state.revision() };
    Ok(ApiResponse { stale_ms, etag: Some(view.meta.revision), ..ApiResponse::new(body, state.revision()) })
}

/// Returns `not-found`: the format is a part of the path, so an unknown format makes an unknown path.
fn not_found(detail: String) -> Problem {
    Problem::new(Code::NotFound, detail)
}
