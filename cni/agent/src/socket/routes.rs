//! Routes of the socket: the servers' routes that the plugin uses, GC, and the reports of the agent.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ipam_api::agent::{
    ATTACHMENTS_PATH, DOCTOR_PATH, GC_PATH, GcRequest, INVENTORY_PATH, InventoryReport, NodeAttachments,
};
use ipam_api::brand::{
    GATEWAY_OF_NODE, HEADER_ANNOUNCE, HEADER_BUDGET_MS, HEADER_GATEWAY, HEADER_LINK, HEADER_NETNS,
    HEADER_RUNTIME,
};
use ipam_api::client::{Answer, Call};
use ipam_api::limits::{
    BODY_BYTES_MAX, BUDGET_MS_DEFAULT, BUDGET_MS_MAX, JOURNAL_DEL_BYTES_MAX, NAME_CHARS_MAX,
};
use ipam_api::mac::MacAddress;
use ipam_api::name::{InterfaceName, ObjectName};
use ipam_api::problem::{Code, Problem};

use crate::attachment::{self, Container, Request};
use crate::doctor;
use crate::inventory::{collect, compare, take_newer};
use crate::journal::Key;
use crate::node::Node;
use crate::pod_add;
use crate::probing::wire::Wire;
use crate::status::status;

use super::attachments::node_attachments;

/// Time that is reserved to pass a server's answer on to the plugin.
const ANSWER: Duration = Duration::from_millis(250);

/// Problem as a response.
struct Refused(Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let media_type = [(CONTENT_TYPE, "application/problem+json")];
        (status, media_type, serde_json::to_vec(&self.0).unwrap_or_default()).into_response()
    }
}

/// Router of the socket. The probes of ADDs use the wire.
pub fn router(node: Arc<Node>, wire: impl Wire + Clone + 'static) -> Router {
    let add =
        move |State(node): State<Arc<Node>>, headers: HeaderMap, body: Bytes| add(node, wire, headers, body);
    Router::new()
        .route("/v1/allocations", post(add))
        .route("/v1/attachments/release", post(del))
        .route("/v1/attachments/{realm}/{node}/{config}/{container}/{interface}", get(check))
        .route("/readyz", get(ready))
        .route(ATTACHMENTS_PATH, get(attachments))
        .route(GC_PATH, post(gc))
        .route(DOCTOR_PATH, get(report))
        .route(INVENTORY_PATH, get(differences).post(newer))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .fallback(|| async { Refused(Problem::new(Code::NotFound, "the agent has no such path")) })
        .with_state(node)
}

async fn add(
    node: Arc<Node>,
    wire: impl Wire + 'static,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refused> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let runtime = text(HEADER_RUNTIME).unwrap_or_default().chars().take(NAME_CHARS_MAX).collect();
    let netns = text(HEADER_NETNS).map(str::parse).transpose()?;
    let link = text(HEADER_LINK).and_then(|link| InterfaceName::new(link).ok());
    let node_is_gateway = text(HEADER_GATEWAY) == Some(GATEWAY_OF_NODE);
    // A group's address would send the traffic of the container to all hosts of the link.
    let mac =
        text(HEADER_ANNOUNCE).and_then(|mac| mac.parse().ok()).filter(|mac: &MacAddress| mac.is_unicast());
    let container = Container { runtime, netns, link, node_is_gateway, mac };
    let request = Request::read(&node, &body)?;
    let budget = budget(&headers);
    // The task outlives a killed plugin, since the journal needs the outcome.
    let task = tokio::spawn(pod_add::add(node, wire, request, container, budget));
    Ok(relayed(task.await.map_err(|_| aborted())??))
}

async fn del(State(node): State<Arc<Node>>, body: Bytes) -> Result<Response, Refused> {
    if body.len() > JOURNAL_DEL_BYTES_MAX {
        let detail = format!("a DEL has at most {JOURNAL_DEL_BYTES_MAX} bytes");
        return Err(Problem::new(Code::TooLarge, detail).into());
    }
    let request = Request::read(&node, &body)?;
    let task = tokio::spawn(attachment::del(node, request));
    let answer = task.await.map_err(|_| aborted())??;
    Ok(answer.map_or_else(|| Json(attachment::recorded()).into_response(), relayed))
}

async fn check(
    State(node): State<Arc<Node>>,
    headers: HeaderMap,
    Path((_, _, config, container_id, interface)): Path<(
        String,
        String,
        ObjectName,
        ObjectName,
        InterfaceName,
    )>,
) -> Result<Response, Refused> {
    let key = Key { config, container_id, interface }.on(&node.config.node);
    Ok(relayed(node.cluster.send(Call::get(key.path()).within(budget(&headers))).await?))
}

async fn gc(State(node): State<Arc<Node>>, body: Bytes) -> Result<Response, Refused> {
    let request: GcRequest = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(Code::MalformedBody, error.to_string()))?;
    Ok(Json(collect(node, request).await?).into_response())
}

async fn ready(State(node): State<Arc<Node>>) -> Result<Response, Refused> {
    status(&node)?;
    Ok(Json(serde_json::json!({ "ready": true })).into_response())
}

async fn attachments(State(node): State<Arc<Node>>) -> Json<NodeAttachments> {
    Json(node_attachments(&node.journal.attachments()))
}

async fn differences(State(node): State<Arc<Node>>) -> Result<Json<InventoryReport>, Refused> {
    Ok(Json(compare(&node).await?))
}

async fn newer(State(node): State<Arc<Node>>) -> Result<Json<InventoryReport>, Refused> {
    let task = tokio::spawn(async move { take_newer(&node).await });
    Ok(Json(task.await.map_err(|_| aborted())??))
}

async fn report(State(node): State<Arc<Node>>) -> Response {
    Json(doctor::report(&node.config, Some(&node)).await).into_response()
}

/// The servers' answer, as the plugin reads it.
fn relayed(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    (status, [(CONTENT_TYPE, "application/json")], answer.body).into_response()
}

/// Remaining time of the plugin, minus the time to deliver the answer: the servers' reason must reach it.
fn budget(headers: &HeaderMap) -> Duration {
    let named = headers.get(HEADER_BUDGET_MS).and_then(|value| value.to_str().ok()?.parse().ok());
    let budget = Duration::from_millis(named.unwrap_or(BUDGET_MS_DEFAULT).min(BUDGET_MS_MAX));
    budget.saturating_sub(ANSWER.min(budget / 4))
}

fn aborted() -> Problem {
    Problem::new(Code::Internal, "the agent stopped in the middle of the request").maybe_applied()
}
