//! Response to a refused connection, as bytes that are sent before it is closed.

use axum::http::StatusCode;
use ipam_api::Problem;

/// Returns a problem as a complete HTTP response, after which the connection is closed.
pub(super) fn rejection(problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_string(problem).unwrap_or_default();
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = status.canonical_reason().unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\nconnection: \
         close\r\ncontent-length: {length}\r\n\r\n{body}",
        status.as_u16()
    )
    .into_bytes()
}
