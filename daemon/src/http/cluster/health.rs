//! `/livez`, `/readyz` and `/metrics`: endpoints for monitoring.

use axum::extract::State as AppState;
use axum::response::Response;
use ipam_api::access::{Target, Verb};
use ipam_api::{Code, Problem};

use crate::http::request::response::exposition;
use crate::http::request::{ApiError, App, Caller, Notes};

pub(in crate::http) async fn ready(
    AppState(app): AppState<App>,
    notes: Notes,
) -> Result<&'static str, ApiError> {
    let Err(why) = app.node.ready() else { return Ok("ok\n") };
    // An unauthenticated caller gets the reason without details: paths, numbers and names of members.
    let why = if notes.is_known() { &*why } else { why.split(": ").next().unwrap_or_default() };
    Err(Problem::new(Code::NoLeader, format!("not ready: {why}")).into())
}

pub(in crate::http) async fn metrics(
    AppState(app): AppState<App>,
    caller: Caller,
) -> Result<Response, ApiError> {
    app.check_here(&caller, (Verb::Read, Target::Metrics))?;
    let text = ipam_raft::blocking(move || app.node.guard(|| app.metrics.encode(&app.node))).await;
    Ok(exposition(text.ok().and_then(Result::ok).and_then(Result::ok)))
}
