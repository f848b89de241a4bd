//! Transport of kube's client.
//!
//! kube's own transport resolves names with `getaddrinfo`, which can crash a static program, and accepts
//! lines and answers of any length.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use ipam_api::limits::{
    KUBERNETES_ANSWER_BYTES_MAX, KUBERNETES_PAGE_BYTES_MAX, KUBERNETES_REQUEST_BYTES_MAX,
};
use kube::client::Body;
use tower::{BoxError, Service};

use super::body::{Bounded, TooLong};
use super::signal::Signal;

/// Time limit of an answer, and of the head of a watch.
const ANSWER: Duration = Duration::from_secs(30);

/// HTTP client as a service.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    /// Signs of life of the watches that are made with it.
    pub(super) signal: Option<Arc<Signal>>,
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Bounded>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bounded>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { http, signal } = self.clone();
        Box::pin(async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let watch = signal.filter(|_| is_watch);
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            if body.len() > KUBERNETES_REQUEST_BYTES_MAX {
                return Err(TooLong::request(KUBERNETES_REQUEST_BYTES_MAX).into());
            }
            let mut request = reqwest::Request::try_from(Request::from_parts(head, body))?;
            let (bytes_max, response) = match &watch {
                Some(signal) => {
                    signal.turn().await;
                    let response = tokio::time::timeout(ANSWER, http.execute(request)).await??;
                    (KUBERNETES_ANSWER_BYTES_MAX, response)
                }
                None => {
                    *request.timeout_mut() = Some(ANSWER);
                    (KUBERNETES_PAGE_BYTES_MAX, http.execute(request).await?)
                }
            };
            // A refused watch has an ordinary answer, whose total length is bounded.
            let watch = watch.filter(|_| response.status().is_success());
            Ok(Response::from(response).map(|body| Bounded::new(body, bytes_max, watch)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_request_is_refused_before_it_is_sent() {
        let _ = ipam_api::tls::provider().as_ref().clone().install_default();
        let mut transport = Transport { http: reqwest::Client::new(), signal: None };
        let send = async |transport: &mut Transport, bytes| {
            let body = Body::from(vec![b'x'; bytes]);
            let request = Request::patch("http://127.0.0.1:1/").body(body).unwrap();
            transport.call(request).await.err().expect("nothing listens there")
        };
        let long = send(&mut transport, KUBERNETES_REQUEST_BYTES_MAX + 1).await;
        assert!(long.is::<TooLong>(), "{long}");
        assert!(!send(&mut transport, KUBERNETES_REQUEST_BYTES_MAX).await.is::<TooLong>());
    }
}
