//! A request that changes something: who asks, on which terms, and the body.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use ipam_api::brand::HEADER_IDEMPOTENCY_KEY;
use ipam_api::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use ipam_api::name::shown;
use ipam_api::{Code, Problem, strict};
use ipam_raft::machine::command::{Idempotency, Manager, request_hash};
use serde::de::DeserializeOwned;

use super::App;
use super::asker::{Asker, header_text};
use super::reply::{Refused, refused_body};

/// A request that changes something.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) asker: Asker,
    pub(super) body: Bytes,
    /// Its name, if the caller gave it one.
    pub(super) idempotency: Option<Idempotency>,
    /// In whose management.
    pub(super) manager: Manager,
}

impl Write {
    /// The body, read strictly.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        strict::from_slice(&self.body)
    }
}

impl FromRequest<App> for Write {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let asker = Asker::from_request_parts(&mut parts, app).await?;
        let key = header_text(&parts.headers, HEADER_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_BYTES_MAX)?;
        let headers = parts.headers.clone();
        let target = format!("{} {}", parts.method, parts.uri);
        let body = Bytes::from_request(Request::from_parts(parts, body), app)
            .await
            .map_err(|rejection| refused_body(rejection.status()))?;
        check_json(&headers, &body)?;
        let idempotency =
            key.map(|key| Idempotency { key, request: request_hash(&[target.as_bytes(), &body]) });
        Ok(Self { asker, body, idempotency, manager: Manager::Nobody })
    }
}

/// Refuses a body that doesn't claim to be JSON.
fn check_json(headers: &HeaderMap, body: &Bytes) -> Result<(), Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || body.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("the body's type is {}", shown(kind))))
}
