//! Network: streams between simulated hosts, for members and for clients.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ipam_api::brand::HEADER_REQUEST_ID;
use ipam_api::client::{Exchange, Lost, Network};
use ipam_api::limits::CONNECT_MS_MAX;
use ipam_raft::simulation::{Halves, Port, Simulated};
use tokio::time::timeout;
use turmoil::net::{TcpListener, TcpStream};

use super::agent_socket::exchange_over;

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

/// The request as HTTP has it, with an id: without one, the receiver would choose a random one.
pub(super) fn outgoing(request: &reqwest::Request, host: &str) -> Result<http::Request<Full<Bytes>>, Lost> {
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

pub(super) fn unsent(error: &dyn fmt::Display) -> Lost {
    Lost::Unsent(error.to_string())
}

/// Task that ends when the value is dropped.
pub(super) struct AbortOnDrop(pub(super) tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
