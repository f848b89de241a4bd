//! Write request: caller, terms and body.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method};
use ipam_api::brand::HEADER_IDEMPOTENCY_KEY;
use ipam_api::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use ipam_api::name::shown;
use ipam_api::{Code, Problem, strict};
use ipam_machine::Outcome;
use ipam_machine::command::{Idempotency, Manager, Text, request_hash};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::app::App;
use super::caller::{Caller, header_text};
use super::query::{Asked, NoQuery, WriteQuery};
use super::response::{ApiError, refused_body};

/// Write request; `Q` are its specific query parameters.
pub(in crate::http) struct Write<Q = NoQuery> {
    pub(in crate::http) app: App,
    pub(in crate::http) caller: Caller,
    pub(in crate::http) query: Q,
    pub(super) headers: HeaderMap,
    pub(in crate::http) body: Bytes,
    /// Idempotency key and hash of the request, if the caller sent a key.
    pub(in crate::http) idempotency: Option<Idempotency>,
    /// Requested manager, if any.
    pub(in crate::http) manager: Option<Manager>,
    /// True for a dry run.
    pub(in crate::http) dry_run: bool,
}

impl<Q> Write<Q> {
    /// Parses the body strictly.
    pub(in crate::http) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        strict::from_slice(&self.body)
    }

    /// Parses the body as a JSON object.
    pub(in crate::http) fn object(&self) -> Result<Map<String, Value>, Problem> {
        strict::object(&self.body)
    }

    /// Uses the manager in the body, unless a parameter names one.
    pub(in crate::http) fn manage_as(&mut self, body: &Map<String, Value>) {
        if self.manager.is_none()
            && let Some(manager) = body.get("managed_by").and_then(Value::as_str)
        {
            self.manager = Some(Manager::Named(Text::given(manager)));
        }
    }

    pub(super) fn note_replayed(&self, outcome: &Outcome) {
        if outcome.as_ref().map_or_else(|refusal| refusal.replayed, |applied| applied.replayed) {
            self.caller.notes.note_replayed();
        }
    }
}

impl<Q: DeserializeOwned + Send> FromRequest<App> for Write<Q> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Asked(query) = Asked::from_request_parts(&mut parts, app).await?;
        let caller = Caller::from_request_parts(&mut parts, app).await?;
        let key = header_text(&parts.headers, HEADER_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_BYTES_MAX)?;
        let WriteQuery { dry_run, take_over, manager } = WriteQuery::of(&parts.uri)?;
        if dry_run {
            caller.notes.note_dry_run();
        }
        let manager = match (take_over, manager) {
            (true, _) => Some(Manager::TakeOver),
            (false, manager) => manager.map(|name| Manager::Named(Text::given(name))),
        };
        let (method, headers) = (parts.method.clone(), parts.headers.clone());
        let target = format!("{} {}", parts.method, parts.uri);
        let body = Bytes::from_request(Request::from_parts(parts, body), app)
            .await
            .map_err(|rejection| refused_body(rejection.status()))?;
        check_json(&method, &headers, &body)?;
        let idempotency =
            key.map(|key| Idempotency { key, request: request_hash(&parts_of(&target, &headers, &body)) });
        Ok(Self { app: app.clone(), caller, query, headers, body, idempotency, manager, dry_run })
    }
}

/// Parts of a request that its idempotency hash covers. Preconditions are among them.
fn parts_of<'a>(target: &'a str, headers: &'a HeaderMap, body: &'a [u8]) -> Vec<&'a [u8]> {
    let mut parts = vec![target.as_bytes(), body];
    for name in [IF_MATCH, IF_NONE_MATCH] {
        // The header name is included, so that `If-Match` and `If-None-Match` with one value differ.
        for value in headers.get_all(&name) {
            parts.push(if name == IF_MATCH { b"if-match" } else { b"if-none-match" });
            parts.push(value.as_bytes());
        }
    }
    parts
}

/// Refuses a body that doesn't claim to be JSON.
fn check_json(method: &Method, headers: &HeaderMap, body: &Bytes) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let merges = *method == Method::PATCH && kind.eq_ignore_ascii_case("application/merge-patch+json");
    if kind.eq_ignore_ascii_case("application/json") || merges || body.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("the body's type is {}", shown(kind))))
}
