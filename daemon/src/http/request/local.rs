//! Requests of a leader-only task to the API of its own member, without a socket and a token.
//!
//! **Invariant:** such a request is never forwarded. It has no effect outside of the leadership of its task.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::HOST;
use ipam_api::brand::HEADER_BUDGET_MS;
use ipam_api::client::{Answer, Call};
use ipam_api::{Code, Problem};
use ipam_machine::Grant;
use ipam_machine::command::Text;
use tower::ServiceExt as _;

use super::caller::TaskCaller;

/// API of this member, for one task in one leadership.
#[derive(Debug, Clone)]
pub struct LocalServer {
    router: Router,
    caller: TaskCaller,
}

impl LocalServer {
    /// Serves requests of a principal with these rights.
    #[must_use]
    pub fn new(router: Router, principal: &str, grant: Grant, leadership: u64) -> Self {
        let caller = TaskCaller { principal: Text::given(principal), grant: Arc::new(grant), leadership };
        Self { router, caller }
    }

    /// Sends a request, once.
    ///
    /// # Errors
    /// The problem of the answer.
    pub async fn send(&self, call: Call) -> Result<Answer, Problem> {
        let internal = |error: axum::http::Error| Problem::new(Code::Internal, error.to_string());
        let mut request = Request::builder().method(call.method()).uri(call.path()).header(HOST, "localhost");
        for (name, value) in call.headers() {
            request = request.header(name, value);
        }
        request = request.header(HEADER_BUDGET_MS, call.deadline().as_millis().to_string());
        let body = call.body().map(<[u8]>::to_vec).unwrap_or_default();
        let request = request.extension(self.caller.clone()).body(Body::from(body)).map_err(internal)?;
        let response = self.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        let (head, body) = response.into_parts();
        // The handlers bound their answers.
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| Problem::new(Code::Internal, error.to_string()))?.to_vec();
        if head.status.is_success() {
            return Ok(Answer::new(head.status.as_u16(), head.headers, body));
        }
        let unreadable = |error| Problem::new(Code::Internal, format!("{}: {error}", head.status));
        Err(serde_json::from_slice(&body).unwrap_or_else(unreadable))
    }
}
