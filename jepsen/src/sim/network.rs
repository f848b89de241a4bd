//! Network: streams between simulated hosts, for members and for clients, and the sockets of agents.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ipam_api::brand::HEADER_REQUEST_ID;
use ipam_api::client::{Exchange, Lost, Network};
use ipam_api::limits::CONNECT_MS_MAX;
use ipam_raft::simulation::{Halves, Port, Simulated};
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;
use tower::ServiceExt as _;
use turmoil::net::{TcpListener, TcpStream};

/// Port at which members answer their peers.
pub(super) const PEERS: u16 = 7441;
/// Port at which members answer clients.
pub(super) const CLIENTS: u16 = 7440;

/// URL at which a member answers clients.
pub(super) fn url(name: &str) -> String {
    format!("http://{name}:{CLIENTS}")
}

thread_local! {
    /// Number of requests of this thread's simulation.
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
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

/// Connects to the peer port of a member.
pub(super) fn connect(address: &str) -> Simulated<'static, Halves> {
    let address = address.to_owned();
    Box::pin(async move { Ok(halves(TcpStream::connect(address).await?)) })
}

fn halves(stream: TcpStream) -> Halves {
    let (read, write) = stream.into_split();
    (Box::new(read), Box::new(write))
}

/// Listener of a simulated host.
pub(super) struct Listener(TcpListener);

impl Listener {
    /// Binds a port of the host whose task calls.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let any: SocketAddr = (IpAddr::from([0, 0, 0, 0]), port).into();
        TcpListener::bind(any).await.map(Self)
    }

    /// Accepts the next connection.
    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.0.accept().await
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl Port for Listener {
    fn accept(&self) -> Simulated<'_, (Halves, IpAddr)> {
        Box::pin(async {
            let (stream, address) = self.0.accept().await?;
            Ok((halves(stream), address.ip()))
        })
    }
}

/// Network of clients: each request to a host has a connection of its own.
#[derive(Debug)]
pub(super) struct Hosts;

impl Network for Hosts {
    fn exchange(&self, request: reqwest::Request) -> Exchange<'_> {
        Box::pin(exchange(request))
    }

    fn exchange_over<'a>(&'a self, socket: &'a Path, request: reqwest::Request) -> Exchange<'a> {
        Box::pin(exchange_over(socket, request))
    }
}

async fn exchange(request: reqwest::Request) -> Result<http::Response<reqwest::Body>, Lost> {
    let unanswered = |error: hyper::Error| Lost::Unanswered(error.to_string());
    let url = request.url();
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(CLIENTS);
    let connecting = timeout(Duration::from_millis(CONNECT_MS_MAX), TcpStream::connect((host.clone(), port)));
    let stream = connecting.await.map_err(|error| unsent(&error))?.map_err(|error| unsent(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| unsent(&error))?;
    // The connection ends with the response's body, or with the task that waits for the response.
    let connection = tokio::spawn(connection);
    let ends = AbortOnDrop(connection.abort_handle());
    let sent = outgoing(&request, &format!("{host}:{port}"))?;
    let response = sender.send_request(sent).await.map_err(unanswered)?;
    Ok(response.map(|body| {
        reqwest::Body::wrap(body.map_frame(move |frame| {
            let _ends = &ends;
            frame
        }))
    }))
}

/// Sends a request to the agent that serves a socket. The agent's runtime runs the request, and ends the
/// request if it ends itself. As with a closed connection, the request ends with its sender, too.
async fn exchange_over(
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

/// The request as HTTP has it, with an id: without one, the receiver would choose a random one.
fn outgoing(request: &reqwest::Request, host: &str) -> Result<http::Request<Full<Bytes>>, Lost> {
    let url = request.url();
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    let mut sent = http::Request::builder().method(request.method().clone()).uri(path);
    if let Some(headers) = sent.headers_mut() {
        headers.clone_from(request.headers());
    }
    let id = REQUESTS.with(|requests| requests.replace(requests.get() + 1));
    let sent = sent.header(http::header::HOST, host).header(HEADER_REQUEST_ID, format!("r{id}"));
    sent.body(Full::new(Bytes::copy_from_slice(body))).map_err(|error| unsent(&error))
}

fn unsent(error: &dyn fmt::Display) -> Lost {
    Lost::Unsent(error.to_string())
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
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
        let response = Hosts.exchange_over(Path::new(SOCKET), request).await?;
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
