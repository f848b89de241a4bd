//! Responses before the state is loaded: liveness, progress, and `not-ready` for all other requests.
//!
//! A large state takes seconds to load. A monitor must not take this for a failure, and clients must learn at
//! once that they should use another member.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State as AppState};
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use ipam_api::brand::HEADER_REQUEST_ID;
use ipam_api::{Code, Problem};
use ipam_raft::progress::Progress;
use tower::ServiceExt as _;

use crate::http::request::caller::request_id;
use crate::http::request::response::{exposition, render, set};
use crate::metrics::Metrics;

/// Router during the start, and the router that replaces it.
#[derive(Clone)]
pub struct Starting {
    progress: Progress,
    metrics: Arc<Metrics>,
    started: Arc<OnceLock<Router>>,
}

impl Starting {
    /// Returns a router for a start with this progress.
    #[must_use]
    pub fn new(progress: Progress, metrics: Arc<Metrics>) -> Self {
        Self { progress, metrics, started: Arc::default() }
    }

    /// Sends all later requests to `router`, also on open connections.
    pub fn over(&self, router: Router) {
        // Called once. A second call would keep the first router.
        let _first = self.started.set(router);
    }

    /// Router of all requests, at any time.
    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }
}

async fn answer(AppState(starting): AppState<Starting>, request: Request) -> Response {
    match starting.started.get() {
        Some(router) => match router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        None => starting.answer(&request),
    }
}

impl Starting {
    fn answer(&self, request: &Request) -> Response {
        let id = request_id(request.headers());
        let mut response = match request.uri().path() {
            "/livez" => "ok\n".into_response(),
            // Open to every caller: access rules need the state, and the metrics cover only the start.
            "/metrics" => exposition(self.metrics.encode_start(&self.progress).ok()),
            _ => {
                let detail = format!("not ready: it is starting: {}", self.progress.tell());
                let mut problem = Problem::new(Code::NoLeader, detail);
                problem.request_id = Some(id.clone());
                render(&problem)
            }
        };
        set(response.headers_mut(), HEADER_REQUEST_ID, &id);
        set(response.headers_mut(), CACHE_CONTROL.as_str(), "no-store");
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn ask(router: &Router, path: &str) -> (u16, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_start_is_alive_not_ready_and_at_last_over() {
        let starting = Starting::new(Progress::default(), Arc::new(Metrics::new(true)));
        let router = starting.router();
        assert_eq!(ask(&router, "/livez").await, (200, "ok\n".to_owned()));
        for path in ["/readyz", "/v1/pools"] {
            let (status, body) = ask(&router, path).await;
            let problem: Problem = serde_json::from_str(&body).unwrap();
            assert_eq!((status, problem.code), (503, Code::NoLeader));
            assert!(problem.detail.starts_with("not ready: it is starting: its "), "{problem}");
        }
        let (status, text) = ask(&router, "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.lines().any(|line| line == "ipamd_start_rows 0"), "{text}");
        starting.over(Router::new().route("/readyz", get(|| async { "ok\n" })));
        assert_eq!(ask(&router, "/readyz").await, (200, "ok\n".to_owned()));
        assert_eq!(ask(&router, "/v1/pools").await.0, 404);
    }
}
