//! `/v1/events`: pages (history, audit) or a stream (watch) of events, and the history of an address.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse as _, Response};
use ipam_api::access::{Target, Verb};
use ipam_api::event as shown;

use super::query::EventsQuery;
use super::{item, stream};
use crate::http::request::{ApiError, ApiResponse, Read};

pub(in crate::http) async fn list_or_stream(
    headers: HeaderMap,
    read: Read<EventsQuery>,
) -> Result<Response, ApiError> {
    let streams = |value: &axum::http::HeaderValue| {
        value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains("text/event-stream"))
    };
    if headers.get_all(ACCEPT).iter().any(streams) {
        return Ok(stream::open(read, &headers).await?);
    }
    let asked = read.query.page()?;
    let freshness = (read.query.consistency, read.query.at_least_revision);
    let (_, stale_ms) = read.state_at((Verb::Read, Target::Event), freshness).await?;
    let page = read.app.node.events(asked).await?;
    let body = shown::EventPage {
        items: page.events.iter().map(item::event).collect(),
        revision: page.revision,
        next: page.next.map(|next| next.to_string()),
        oldest: page.oldest.map(|oldest| oldest.to_string()),
    };
    Ok(ApiResponse { stale_ms, ..ApiResponse::new(body, page.revision) }.into_response())
}
