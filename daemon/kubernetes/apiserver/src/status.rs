//! Status objects: the form of refusals.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            406 => "NotAcceptable",
            409 => "Conflict",
            410 => "Expired",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            _ => "InternalError",
        };
        Self { code, reason, message: message.into(), retry_after: None }
    }

    pub(crate) fn retry_after(self, seconds: Option<u64>) -> Self {
        Self { retry_after: seconds, ..self }
    }

    pub(crate) fn exists(message: String) -> Self {
        Self { reason: "AlreadyExists", ..Self::new(409, message) }
    }

    pub(crate) fn object(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": self.reason, "message": self.message, "code": self.code,
        })
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response =
            (code, [(CONTENT_TYPE, "application/json")], self.object().to_string()).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
