//! Status objects: the form of refusals.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::custom::Cause;
use crate::path::Place;
use crate::resources::Resource;

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
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
        Self { code, reason, message: message.into(), details: None, retry_after: None }
    }

    pub(crate) fn retry_after(self, seconds: Option<u64>) -> Self {
        Self { retry_after: seconds, ..self }
    }

    pub(crate) fn details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// Refusal that names an object.
    fn of_object(code: u16, resource: &str, name: &str, message: String) -> Self {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let mut details = json!({"name": name, "kind": plural});
        if !group.is_empty() {
            details["group"] = group.into();
        }
        Self::new(code, message).details(details)
    }

    pub(crate) fn missing(resource: &str, name: &str) -> Self {
        Self::of_object(404, resource, name, format!("{resource} {name:?} not found"))
    }

    pub(crate) fn exists(resource: &str, name: &str, is_deleting: bool) -> Self {
        let prefix = if is_deleting { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{resource} {name:?} already exists");
        Self { reason: "AlreadyExists", ..Self::of_object(409, resource, name, message) }
    }

    /// Refusal of an object with wrong fields.
    pub(crate) fn invalid(place: &Place, name: &str, causes: &[Cause]) -> Self {
        let Resource { group, kind, .. } = &place.resource;
        let qualified = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        let texts = causes.iter().map(Cause::text).collect::<Vec<_>>();
        let why = match texts.as_slice() {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let causes = causes.iter().map(Cause::object).collect::<Vec<_>>();
        Self::new(422, format!("{qualified} {name:?} is invalid: {why}"))
            .details(json!({"name": name, "group": group, "kind": kind, "causes": causes}))
    }

    pub(crate) fn conflict(resource: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::of_object(409, resource, name, message)
    }

    pub(crate) fn object(&self) -> Value {
        let mut object = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": self.reason, "message": self.message, "code": self.code,
        });
        if let Some(details) = &self.details {
            object["details"] = details.clone();
        }
        object
    }
}

/// Status of a deletion.
pub(crate) fn success(place: &Place, name: &str, uid: &Value) -> Value {
    let Resource { group, plural, .. } = &place.resource;
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": name, "group": group, "kind": plural, "uid": uid},
    })
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
