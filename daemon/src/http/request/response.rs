//! Common parts of all responses: problems, revision, leader, request id and timing.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ETAG, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ipam_api::brand::{
    HEADER_DRY_RUN, HEADER_IDEMPOTENCY_REPLAYED, HEADER_LEADER, HEADER_REQUEST_ID, HEADER_REVISION,
    HEADER_SERVER_TIMING, HEADER_STALE_MS,
};
use ipam_api::limits::{BODY_READ_MS_MAX, RETRY_AFTER_MS_MIN};
use ipam_api::problem::Retry;
use ipam_api::{Code, Problem};
use serde::Serialize;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::app::App;
use super::body::Verdict;
use super::caller::{LocalCaller, Offer, request_id};
use super::notes::Notes;
use super::peer::Peer;
use super::trace::trace_id;

/// Problem that becomes the response.
#[derive(Debug)]
pub(in crate::http) struct ApiError(pub(crate) Problem);

impl<P: Into<Problem>> From<P> for ApiError {
    fn from(problem: P) -> Self {
        Self(problem.into())
    }
}

/// Carries the problem to [`around`], which knows the request.
#[derive(Clone)]
struct Pending(Problem);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(Pending(self.0));
        response
    }
}

/// Response body with its headers.
#[derive(Debug)]
pub(crate) struct ApiResponse<T> {
    pub(crate) status: StatusCode,
    pub(crate) body: T,
    pub(crate) revision: u64,
    pub(in crate::http) etag: Option<u64>,
    pub(in crate::http) location: Option<String>,
    pub(in crate::http) stale_ms: Option<u64>,
}

impl<T> ApiResponse<T> {
    pub(crate) fn new(body: T, revision: u64) -> Self {
        Self { status: StatusCode::OK, body, revision, etag: None, location: None, stale_ms: None }
    }
}

impl<T: Serialize> IntoResponse for ApiResponse<T> {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        set(headers, HEADER_REVISION, &self.revision.to_string());
        if let Some(etag) = self.etag {
            set(headers, ETAG.as_str(), &format!("\"{etag}\""));
        }
        if let Some(location) = self.location {
            set(headers, "location", &location);
        }
        if let Some(stale_ms) = self.stale_ms {
            set(headers, HEADER_STALE_MS, &stale_ms.to_string());
        }
        response
    }
}

pub(in crate::http) fn set(headers: &mut axum::http::HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// Layer around every handler: sets the request id, renders problems, counts, and names the leader.
pub(in crate::http) async fn around(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = request_id(request.headers());
    set(request.headers_mut(), HEADER_REQUEST_ID, &id);
    let verdict = request.extensions().get::<Verdict>().cloned();
    let notes = Notes::default();
    request.extensions_mut().insert(notes.clone());
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let version = request.version();
    let peer = request.extensions().get::<Peer>();
    let offer = match request.extensions().get::<LocalCaller>() {
        Some(local) => local.offer(),
        None => Offer::read(request.headers(), peer, &app),
    };
    let flight = app.in_flight.begin(offer.caller(peer));
    request.extensions_mut().insert(offer);
    let trace = trace_id(request.headers()).map(str::to_owned);
    let span = tracing::info_span!("request", id, trace);
    let mut response = match flight {
        Some(_) => match app.node.guard_work(next.run(request).instrument(span.clone())).await {
            Ok(response) => response,
            Err(broken) => ApiError(broken.into()).into_response(),
        },
        None => {
            let limit = ipam_api::limits::REQUESTS_IN_FLIGHT_PER_CALLER_MAX;
            let detail = format!("the caller has {limit} requests on their way already");
            let pause_ms = app.retry_after.spread_ms(Duration::from_millis(RETRY_AFTER_MS_MIN));
            ApiError(Problem::new(Code::TooManyRequests, detail).retry_after(pause_ms)).into_response()
        }
    };
    drop(flight);
    let problem = response.extensions_mut().remove::<Pending>().map(|pending| pending.0);
    let too_slow = verdict.as_ref().is_some_and(Verdict::too_slow);
    let problem = match too_slow {
        true => {
            Some(Problem::new(Code::TooSlow, format!("the body did not come within {BODY_READ_MS_MAX} ms")))
        }
        false => problem.or_else(|| unrendered(&response)),
    };
    if let Some(mut problem) = problem {
        problem.request_id = Some(id.clone());
        // An unauthenticated caller learns nothing about the state, not even its revision.
        problem.revision = notes.is_known().then(|| problem.revision.unwrap_or_else(|| app.node.revision()));
        app.metrics.refused(problem.code);
        let allow = response.headers_mut().remove(ALLOW);
        response = render(&problem);
        response.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    }
    let took = begun.elapsed();
    let headers = response.headers_mut();
    // Over HTTP/2 only the stream ends, and the header is forbidden.
    if version <= Version::HTTP_11 && verdict.is_some_and(|verdict| verdict.is_unread()) {
        set(headers, CONNECTION.as_str(), "close");
    }
    set(headers, HEADER_REQUEST_ID, &id);
    set(headers, CACHE_CONTROL.as_str(), "no-store");
    set(headers, HEADER_SERVER_TIMING, &notes.timing(took));
    if notes.is_dry_run() {
        set(headers, HEADER_DRY_RUN, "true");
    }
    if notes.is_replayed() {
        set(headers, HEADER_IDEMPOTENCY_REPLAYED, "true");
    }
    if let Some(url) = app.node.leader_client_url().filter(|_| notes.is_known()) {
        set(headers, HEADER_LEADER, &url);
    }
    span.in_scope(|| tracing::debug!(route, status = response.status().as_u16(), ?took, "answered"));
    app.metrics.answered(route.as_deref().unwrap_or("none"), response.status().as_u16(), took);
    response
}

/// Problem of a body that could not be read.
pub(super) fn refused_body(status: StatusCode) -> ApiError {
    let limit = ipam_api::limits::BODY_BYTES_MAX;
    ApiError(match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(Code::TooLarge, format!("the body is larger than {limit} bytes"))
        }
        status => Problem::new(Code::MalformedBody, format!("the body can't be read ({status})")),
    })
}

/// Failure that axum answered with its own text.
fn unrendered(response: &Response) -> Option<Problem> {
    match response.status() {
        status if status.is_client_error() && response.headers().get(CONTENT_TYPE) != Some(&PROBLEM_JSON) => {
            Some(Problem::new(Code::MalformedBody, format!("the request can't be read ({status})")))
        }
        _ => None,
    }
}

/// The media type of metrics.
pub(in crate::http) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

pub(in crate::http) fn render(problem: &Problem) -> Response {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
    if let Some(current) = problem.context.as_ref().and_then(|context| context.current.as_ref()) {
        set(response.headers_mut(), ETAG.as_str(), &format!("\"{current}\""));
    }
    let pause_ms = problem.context.as_ref().and_then(|context| context.retry_after_ms);
    if pause_ms.is_some()
        || matches!(problem.status, 429 | 503)
        || (problem.status == 409 && problem.retry == Retry::After)
    {
        let seconds = pause_ms.map_or(1, |ms| ms.div_ceil(1_000));
        set(response.headers_mut(), RETRY_AFTER.as_str(), &seconds.to_string());
    }
    response
}

/// Response with metrics as text, or an error if they can't be encoded.
pub(in crate::http) fn exposition(text: Option<String>) -> Response {
    match text {
        Some(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

pub(in crate::http) async fn no_such_path(request: Request) -> ApiError {
    let path = ipam_api::name::shown(request.uri().path());
    ApiError(Problem::new(Code::NotFound, format!("there is nothing at {path}")))
}

pub(in crate::http) async fn no_such_method(request: Request) -> ApiError {
    let detail =
        format!("{} is not possible at {}", request.method(), ipam_api::name::shown(request.uri().path()));
    ApiError(Problem::new(Code::MethodNotAllowed, detail))
}
