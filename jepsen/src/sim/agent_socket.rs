//! Sockets of agents: routers, which the runtimes of their agents run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use ipam_api::client::Lost;
use tokio::runtime::{Handle, Id};
use tower::ServiceExt as _;

use super::network::{AbortOnDrop, outgoing, unsent};

thread_local! {
    /// Routers of the agents that serve their sockets, each with the runtime of the agent.
    static SOCKETS: RefCell<BTreeMap<PathBuf, (Handle, Router)>> = const { RefCell::new(BTreeMap::new()) };
}

/// Socket of an agent. Dropping the value closes the socket.
#[derive(Debug)]
pub(super) struct AgentSocket {
    path: PathBuf,
    runtime: Id,
}

impl AgentSocket {
    /// Serves a socket on the present runtime, which runs the requests.
    pub(super) fn begin(path: PathBuf, router: Router) -> Self {
        let runtime = Handle::current();
        let served = Self { path: path.clone(), runtime: runtime.id() };
        let former = SOCKETS.with_borrow_mut(|all| all.insert(path, (runtime, router)));
        // Outside of the borrow, since the end of a router ends its agent's state.
        drop(former);
        served
    }
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        let closed = SOCKETS.try_with(|all| {
            let mut all = all.borrow_mut();
            // A later agent may serve the socket already.
            let is_own = all.get(&self.path).is_some_and(|(runtime, _)| runtime.id() == self.runtime);
            is_own.then(|| all.remove(&self.path))
        });
        drop(closed);
    }
}

/// True if an agent serves a socket.
pub(super) fn is_served(path: &Path) -> bool {
    SOCKETS.with_borrow(|all| all.contains_key(path))
}

/// Sends a request to the agent that serves a socket. The agent's runtime runs the request, and ends the
/// request if it ends itself. As with a closed connection, the request ends with its sender, too.
pub(super) async fn exchange_over(
    socket: &Path,
    request: reqwest::Request,
) -> Result<http::Response<reqwest::Body>, Lost> {
    let unanswered = |error: &dyn fmt::Display| Lost::Unanswered(error.to_string());
    let served = SOCKETS.with_borrow(|all| all.get(socket).cloned());
    let Some((runtime, router)) = served else { return Err(unsent(&"connection refused")) };
    let sent = outgoing(&request, "localhost")?;
    let task = runtime.spawn(async move {
        let Ok(response) = router.oneshot(sent.map(Body::new)).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, axum::Error>(http::Response::from_parts(head, reqwest::Body::from(body)))
    });
    let _ends = AbortOnDrop(task.abort_handle());
    task.await.map_err(|error| unanswered(&error))?.map_err(|error| unanswered(&error))
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use bytes::Bytes;
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    const SOCKET: &str = "/agent.sock";

    fn router(text: &'static str) -> Router {
        Router::new().route("/", get(move || async move { text }))
    }

    fn serve(runtime: &Runtime, router: Router) -> AgentSocket {
        runtime.block_on(async { AgentSocket::begin(SOCKET.into(), router) })
    }

    /// Asks the agent at the socket.
    async fn ask() -> Result<Bytes, Lost> {
        let request = reqwest::Request::new(reqwest::Method::GET, "http://localhost/".parse().unwrap());
        let response = exchange_over(Path::new(SOCKET), request).await?;
        Ok(response.into_body().collect().await.unwrap().to_bytes())
    }

    #[tokio::test]
    async fn a_socket_answers_while_an_agent_serves_it() {
        let refused = ask().await;
        assert!(matches!(refused, Err(Lost::Unsent(_))), "{refused:?}");
        let served = AgentSocket::begin(SOCKET.into(), router("present"));
        assert_eq!(ask().await.unwrap(), "present");
        drop(served);
        assert!(ask().await.is_err());
    }

    #[test]
    fn the_end_of_an_agent_ends_its_requests() {
        let [agent, later, plugin] = [(); 3].map(|()| Builder::new_current_thread().build().unwrap());
        let former = serve(&agent, Router::new().route("/", get(std::future::pending::<&'static str>)));
        let task = plugin.spawn(ask());
        plugin.block_on(tokio::task::yield_now());
        drop(agent);
        let ended = plugin.block_on(task).unwrap();
        assert!(matches!(ended, Err(Lost::Unanswered(_))), "{ended:?}");
        // The socket is that of the later agent now.
        let present = serve(&later, router("present"));
        drop(former);
        assert!(is_served(Path::new(SOCKET)));
        drop(present);
        assert!(!is_served(Path::new(SOCKET)));
    }
}
