//! Requests of this process to the API of its own member, without a socket and a token.
//!
//! **Invariant:** a request of a leader-only task is never forwarded. It has no effect outside of the
//! leadership of its task. Other requests have the limits of a client, each principal its own.

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

use super::caller::LocalCaller;

/// API of this member, for one principal.
#[derive(Debug, Clone)]
pub struct LocalServer {
    router: Router,
    caller: LocalCaller,
}

impl LocalServer {
    /// Serves requests of a principal with these rights. With `leadership`, they are requests of a
    /// leader-only task. Without it, a follower forwards them to the leader.
    #[must_use]
    pub fn new(router: Router, principal: &str, grant: Grant, leadership: Option<u64>) -> Self {
        let caller = LocalCaller { principal: Text::given(principal), grant: Arc::new(grant), leadership };
        Self { router, caller }
    }

    /// Serves requests of another principal, with the same rights.
    #[must_use]
    pub fn with_principal(&self, principal: impl AsRef<str>) -> Self {
        let principal = Text::given(principal.as_ref());
        let caller = LocalCaller { principal, ..self.caller.clone() };
        Self { router: self.router.clone(), caller }
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
        // The handlers bound the size of their responses.
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| Problem::new(Code::Internal, error.to_string()))?.to_vec();
        if head.status.is_success() {
            return Ok(Answer::new(head.status.as_u16(), head.headers, body));
        }
        let unreadable = |error| Problem::new(Code::Internal, format!("{}: {error}", head.status));
        Err(serde_json::from_slice(&body).unwrap_or_else(unreadable))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ipam_api::access::Role;
    use ipam_api::limits::REQUESTS_IN_FLIGHT_PER_CALLER_MAX;
    use ipam_raft::node::{InitialMember, Node, NodeConfig, PeerPort};
    use ipam_raft::socket::PrivateSocket;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::access::{Access, AccessConfig};
    use crate::http::request::App;
    use crate::http::router::router;
    use crate::metrics::Metrics;
    use crate::tasks::{GcSettings, Statuses};
    use crate::workload::Switches;

    const LONG: Duration = Duration::from_secs(30);

    /// Members of one cluster, in one directory.
    async fn members(count: usize) -> (TempDir, Vec<Node>) {
        let dir = TempDir::new().unwrap();
        let name = |at: usize| format!("n{at}").parse().unwrap();
        let socket = |at: usize| dir.path().join("peers").join(format!("n{at}"));
        let address = |at: usize| format!("unix:{}", socket(at).display());
        let initial: Vec<_> =
            (0..count).map(|at| InitialMember { name: name(at), peer_address: address(at) }).collect();
        let mut nodes = Vec::new();
        for at in 0..count {
            let port = PeerPort::Socket(PrivateSocket::bind(&socket(at)).await.unwrap());
            let data_dir = dir.path().join(format!("data-{at}"));
            let url = format!("http://n{at}");
            let config = NodeConfig::new(data_dir, name(at), port, address(at), url, initial.clone());
            nodes.push(Node::start(config).await.unwrap());
        }
        (dir, nodes)
    }

    async fn follower_of(nodes: &[Node]) -> &Node {
        let begun = Instant::now();
        loop {
            let leads = |node: &&Node| node.leadership().borrow().is_some();
            let follows = |node: &&Node| !leads(node) && node.leader_client_url().is_some();
            match (nodes.iter().find(leads), nodes.iter().find(follows)) {
                (Some(_), Some(follower)) => return follower,
                _ if begun.elapsed() > LONG => panic!("no member leads"),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    fn app(node: &Node) -> App {
        let access = Access::new(AccessConfig::default()).unwrap();
        let gc = GcSettings { silent_nodes: false, node_grace_ms: 1, workloads: Switches::default() };
        App::new(node.clone(), Arc::new(Metrics::new(false)), access, (gc, Arc::new(Statuses::default())))
    }

    fn put(name: &str) -> Call {
        Call::put(format!("/v1/networks/{name}")).json(&json!({"name": name})).unwrap().within(LONG)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_follower_forwards_what_no_leadership_limits() {
        let (_dir, nodes) = members(2).await;
        let follower = follower_of(&nodes).await;
        let router = router(app(follower));
        let local = LocalServer::new(router.clone(), "grpc", Grant::of(Role::Operator), None);
        let local = local.with_principal("spiffe://example.org/proxy");
        let made: Value = local.send(put("mine")).await.unwrap().read().unwrap();
        assert_eq!(made["meta"]["created_by"], "spiffe://example.org/proxy", "{made}");
        let task = LocalServer::new(router, "task", Grant::of(Role::Operator), Some(1));
        assert_eq!(task.send(put("other")).await.unwrap_err().code, Code::NoLeader);
        let problem = local.send(Call::get("/v1/networks/other").within(LONG)).await.unwrap_err();
        assert_eq!(problem.code, Code::NotFound, "{problem}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn each_principal_has_places_and_rights_as_a_client() {
        let (_dir, nodes) = members(1).await;
        let app = app(&nodes[0]);
        let greedy = LocalServer::new(router(app.clone()), "greedy", Grant::of(Role::Viewer), None);
        let modest = greedy.with_principal("modest");
        let name = greedy.caller.offer().caller(None);
        let begun: Vec<_> =
            (0..REQUESTS_IN_FLIGHT_PER_CALLER_MAX).map(|_| app.in_flight.begin(name.clone())).collect();
        assert!(begun.iter().all(Option::is_some));
        let networks = || Call::get("/v1/networks").within(LONG);
        assert_eq!(greedy.send(networks()).await.unwrap_err().code, Code::TooManyRequests);
        modest.send(networks()).await.unwrap();
        drop(begun);
        greedy.send(networks()).await.unwrap();
        assert_eq!(modest.send(put("mine")).await.unwrap_err().code, Code::Forbidden);
    }
}
