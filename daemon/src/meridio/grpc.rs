//! Answers of gRPC that need no method: a status without a message, in the head of the response.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Response};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Status codes that are answered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    PermissionDenied = 7,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// Refused call. The message has no character that gRPC would encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused(pub(super) Code, pub(super) &'static str);

impl Refused {
    /// The refusal as a response without a body.
    pub(super) fn response(self) -> Response<Body> {
        let Self(code, message) = self;
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, GRPC);
        headers.insert(GRPC_STATUS, HeaderValue::from(code as u16));
        headers.insert(GRPC_MESSAGE, HeaderValue::from_static(message));
        response
    }
}
