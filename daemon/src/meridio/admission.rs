//! Admission of calls: HTTP/2 only, from known clients, and once the trench is prepared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Version};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

use super::grpc::{Code, Refused};
use super::identity::{Identities, Permitted};
use crate::http::request::Peer;

/// Beginning of the paths of health checks, which each client may call at any time.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Admission rules of calls. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    identities: Identities,
    is_prepared: Arc<AtomicBool>,
}

impl Admission {
    /// Rules of a member whose trench is not prepared.
    pub(super) fn new(identities: Identities) -> Self {
        Self { identities, is_prepared: Arc::default() }
    }

    /// Admits calls for addresses from now on.
    pub(super) fn open(&self) {
        self.is_prepared.store(true, Ordering::Release);
    }

    /// Router whose requests are admitted, and have their callers among their extensions.
    pub(super) fn around(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.clone(), admit))
    }

    fn check(&self, request: &mut Request) -> Result<(), Refused> {
        let stranger = Refused(Code::Unauthenticated, "the connection has no peer");
        let peer = request.extensions().get::<Peer>().ok_or(stranger)?;
        let is_health = request.uri().path().starts_with(HEALTH);
        match self.identities.identify(peer)? {
            Permitted::All(caller) => {
                request.extensions_mut().insert(caller);
            }
            Permitted::Health if is_health => {}
            Permitted::Health => {
                let why = "this user may only check the health (access.trusted_uids)";
                return Err(Refused(Code::PermissionDenied, why));
            }
        }
        if is_health || self.is_prepared.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Refused(Code::Unavailable, "not ready: the member is starting, or has not reached a leader yet"))
    }
}

async fn admit(State(admission): State<Admission>, mut request: Request, next: Next) -> Response {
    // Browsers use no HTTP/2 without TLS, so a page of another site can't reach the service.
    if request.version() != Version::HTTP_2 {
        return (StatusCode::HTTP_VERSION_NOT_SUPPORTED, "this port serves gRPC over HTTP/2\n")
            .into_response();
    }
    match admission.check(&mut request) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            tracing::debug!(?refused, "a call is refused");
            refused.response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::HeaderMap;
    use ipam_meridio::Caller;
    use tower::ServiceExt as _;

    use super::*;
    use crate::access::{Access, AccessConfig};

    const ALLOCATE: &str = "/ipam.v1.Ipam/Allocate";
    const CHECK: &str = "/grpc.health.v1.Health/Check";

    fn admission() -> Admission {
        let access = Access::new(AccessConfig::default()).unwrap();
        Admission::new(Identities::new(access, false, &[]))
    }

    /// gRPC status of a refused call, or the caller that the service got.
    async fn asked(admission: &Admission, peer: Option<Peer>, path: &str) -> String {
        let service = |request: Request| async move {
            let caller = request.extensions().get::<Caller>().map_or("-", |caller| &*caller.0).to_owned();
            [("grpc-message", caller)]
        };
        let router = admission.around(Router::new().fallback(service));
        let mut request = Request::builder().uri(path).version(Version::HTTP_2).body(Body::empty()).unwrap();
        request.extensions_mut().extend(
            peer.map(|peer| {
                let mut extensions = axum::http::Extensions::new();
                extensions.insert(peer);
                extensions
            })
            .unwrap_or_default(),
        );
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let header = |headers: &HeaderMap, name: &str| {
            headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let headers = response.headers();
        match header(headers, "grpc-status") {
            Some(status) => {
                assert_eq!(header(headers, "content-type").unwrap(), "application/grpc");
                assert!(!header(headers, "grpc-message").unwrap().is_empty());
                status
            }
            None => header(headers, "grpc-message").unwrap(),
        }
    }

    fn client() -> Option<Peer> {
        Some(Peer::Tcp { address: ([127, 0, 0, 1], 1).into(), certificate: None })
    }

    #[tokio::test]
    async fn calls_wait_for_the_trench_and_health_checks_do_not() {
        let admission = admission();
        assert_eq!(asked(&admission, client(), ALLOCATE).await, "14");
        assert_eq!(asked(&admission, client(), CHECK).await, "meridio/anonymous");
        admission.open();
        assert_eq!(asked(&admission, client(), ALLOCATE).await, "meridio/anonymous");
    }

    #[tokio::test]
    async fn unknown_users_of_the_socket_may_check_the_health_only() {
        let admission = admission();
        admission.open();
        let stranger = || Some(Peer::Socket { uid: 4_000_000_001 });
        assert_eq!(asked(&admission, stranger(), ALLOCATE).await, "7");
        assert_eq!(asked(&admission, stranger(), CHECK).await, "-");
        assert_eq!(asked(&admission, None, CHECK).await, "16");
    }

    #[tokio::test]
    async fn other_versions_of_http_are_refused() {
        let router = admission().around(Router::new());
        let mut request = Request::builder().uri(CHECK).body(Body::empty()).unwrap();
        request.extensions_mut().insert(client().unwrap());
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    }
}
