//! `/v1/events`: a page (history, audit) or a stream (watch) of what has happened, and the history of one
//! address.

use axum::Router;
use axum::extract::State as AppState;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use ipam_api::access::{Target, Verb};
use ipam_api::event as shown;

use super::query::EventsQuery;
use super::{history, item, stream};
use crate::http::request::{App, Asked, Asker, Refused, Shown};

pub(in crate::http) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/events", get(list_or_stream))
        .route("/v1/addresses/{ip}/history", get(history::show))
}

async fn list_or_stream(
    AppState(app): AppState<App>,
    asker: Asker,
    headers: HeaderMap,
    Asked(query): Asked<EventsQuery>,
) -> Result<Response, Refused> {
    let streams = |value: &axum::http::HeaderValue| {
        value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("text/event-stream"))
    };
    if headers.get_all(ACCEPT).iter().any(streams) {
        return Ok(stream::open(app, asker, &headers, &query).await?);
    }
    let asked = query.page()?;
    let (_, stale_ms) = app.read(&asker, (Verb::Read, Target::Event), query.freshness()).await?;
    let page = app.node.events(asked).await.map_err(ipam_api::Problem::from)?;
    let body = shown::EventPage {
        items: page.events.iter().map(item::event).collect(),
        revision: page.revision,
        next: page.next.map(|next| next.to_string()),
        oldest: page.oldest.map(|oldest| oldest.to_string()),
    };
    Ok(Shown { stale_ms, ..Shown::new(body, page.revision) }.into_response())
}
