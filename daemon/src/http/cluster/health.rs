//! `/livez`, `/readyz`, `/metrics`: for those who watch.

use axum::extract::State as AppState;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use ipam_api::access::{Target, Verb};
use ipam_api::{Code, Problem};

use crate::http::request::{App, Asker, Notes, Refused};

pub(in crate::http) async fn ready(
    AppState(app): AppState<App>,
    notes: Notes,
) -> Result<&'static str, Refused> {
    let Err(why) = app.node.ready() else { return Ok("ok\n") };
    // A stranger learns the reason without its particulars: paths, numbers, and which members differ.
    let why = if notes.is_known() { &*why } else { why.split(": ").next().unwrap_or_default() };
    Err(Problem::new(Code::NoLeader, format!("not ready: {why}")).into())
}

pub(in crate::http) async fn metrics(
    AppState(app): AppState<App>,
    asker: Asker,
) -> Result<Response, Refused> {
    app.check_here(&asker, (Verb::Read, Target::Metrics))?;
    let text = tokio::task::spawn_blocking(move || app.metrics.encode(&app.node)).await;
    Ok(match text {
        Ok(Ok(text)) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
                .into_response()
        }
        Ok(Err(_)) | Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
}
