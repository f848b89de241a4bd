//! Accept loop: limits on the number, duration and traffic of connections, and a graceful stop.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Version;
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use ipam_api::limits::{
    BODY_READ_MS_MAX, CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, SOCKET_CONNECTIONS_MAX,
    TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_PER_ADDRESS_MAX,
};
use ipam_api::{Code, Problem};
use ipam_raft::connection_limit::{ConnectionLimit, LimitReached, Permit};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::head;
use super::protocols::{HttpVersion, Protocols, read_version};
use super::reject::rejection;
use super::responses::divided;
use super::stream::{ClientStream, Unread};
use super::tls::{ClientTls, Handshake};
use crate::http::request::{Peer, TimedBody};

/// Pause after a failed accept, for instance when file descriptors are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time that running requests have to finish once the server stops.
const FINISH: Duration = Duration::from_secs(5);
/// First byte of a TLS client.
const TLS_HANDSHAKE: u8 = 22;

/// Listener for clients.
#[derive(Debug)]
pub enum Listener {
    Network {
        /// Bound socket.
        listener: TcpListener,
        /// TLS of the listener; with it plain HTTP isn't served.
        tls: Option<ClientTls>,
    },
    /// Processes of this machine.
    Socket(UnixListener),
}

/// Accepted connection.
enum Accepted {
    Network(TcpStream, SocketAddr),
    Socket(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Network { listener, .. } => {
                let (stream, address) = listener.accept().await?;
                Ok(Accepted::Network(stream, address))
            }
            Self::Socket(listener) => Ok(Accepted::Socket(listener.accept().await?.0)),
        }
    }

    fn tls(&self) -> Option<ClientTls> {
        match self {
            Self::Network { tls, .. } => tls.clone(),
            Self::Socket(_) => None,
        }
    }

    /// Limit of concurrent connections. The unix socket has its own limit, so that a flood over the network
    /// doesn't lock out this machine's administrator.
    fn connection_limit(&self, connections_max: usize) -> ConnectionLimit {
        match self {
            Self::Network { .. } => {
                ConnectionLimit::new(connections_max.min(CONNECTIONS_MAX), CONNECTIONS_PER_ADDRESS_MAX)
            }
            Self::Socket(_) => ConnectionLimit::new(SOCKET_CONNECTIONS_MAX, SOCKET_CONNECTIONS_MAX),
        }
    }
}

/// State that all connections of a listener share.
#[derive(Clone)]
struct Shared {
    protocols: Protocols,
    router: Router,
    tls: Option<ClientTls>,
    handshakes: ConnectionLimit,
    stop: watch::Receiver<bool>,
}

/// Serves the REST API until `stop` is true and all requests have finished.
///
/// At most `connections_max` connections are open at once.
pub async fn serve(listener: Listener, connections_max: usize, router: Router, stop: watch::Receiver<bool>) {
    serve_with(Protocols::rest(), listener, connections_max, router, stop).await;
}

/// Like [`serve`], with these limits of HTTP.
pub async fn serve_with(
    protocols: Protocols,
    listener: Listener,
    connections_max: usize,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    let shared = Shared {
        protocols,
        router,
        tls: listener.tls(),
        handshakes: ConnectionLimit::new(TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_PER_ADDRESS_MAX),
        stop: stop.clone(),
    };
    let connection_limit = listener.connection_limit(connections_max);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => accepted,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            // The client closed the connection before it was accepted, so there is nothing to wait for.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                tracing::warn!(%error, "a connection can't be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let address = match &accepted {
            Accepted::Network(_, address) => address.ip(),
            Accepted::Socket(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        match connection_limit.enter(address) {
            Ok(place) => {
                let (shared, watcher) = (shared.clone(), graceful.watcher());
                tokio::spawn(async move {
                    if let Err(error) = shared.entertain(accepted, watcher, place).await {
                        tracing::debug!(%address, %error, "a client's connection ended");
                    }
                });
            }
            Err(full) => shared.send_away(&accepted, full),
        }
    }
    drop((listener, shared));
    if timeout(FINISH, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and are dropped");
    }
}

impl Shared {
    /// Serves one connection to its end.
    async fn entertain(
        mut self,
        accepted: Accepted,
        watcher: Watcher,
        _place: Permit,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if let Accepted::Network(stream, _) = &accepted {
            stream.set_nodelay(true)?;
        }
        match (accepted, self.tls.take()) {
            (Accepted::Socket(stream), _) => {
                let uid = stream.peer_cred()?.uid();
                self.converse(stream, None, watcher, Peer::Socket { uid }).await?;
            }
            (Accepted::Network(stream, address), None) => {
                self.converse(stream, None, watcher, Peer::Tcp { address, certificate: None }).await?;
            }
            (Accepted::Network(stream, address), Some(tls)) => {
                let shaking = self.handshakes.enter(address.ip()).map_err(|full| format!("{full:?}"))?;
                let handshake =
                    timeout(Duration::from_millis(TLS_HANDSHAKE_MS_MAX), shake_hands(stream, &tls));
                let Handshake { stream, version, name } = tokio::select! {
                    _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
                    shaken = handshake => match shaken?? {
                        Some(shaken) => shaken,
                        None => return Ok(()),
                    },
                };
                drop(shaking);
                self.converse(stream, Some(version), watcher, Peer::Tcp { address, certificate: name })
                    .await?;
            }
        }
        Ok(())
    }

    /// Serves the requests of a connection. If `version` is none, the first bytes determine it.
    async fn converse(
        mut self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        version: Option<HttpVersion>,
        watcher: Watcher,
        peer: Peer,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (version, opening) = match version {
            Some(HttpVersion::One) => (HttpVersion::One, Vec::new()),
            // No other timeout covers the HTTP/2 preface, not even after ALPN has chosen the version.
            chosen => tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
                read = read_version(&mut stream, self.protocols.head_read_max) => match read? {
                    (HttpVersion::One, _) if chosen.is_some() => return Ok(()),
                    read => read,
                },
            },
        };
        let (router, unread) = (self.router, Unread::default());
        let stream = TokioIo::new(ClientStream::new(stream, opening, unread.clone()));
        let service =
            TowerToHyperService::new(tower::service_fn(move |request: hyper::Request<Incoming>| {
                let (router, unread) = (router.clone(), unread.clone());
                let (mut head, body) = request.into_parts();
                let (body, verdict) = match body.is_end_stream() {
                    true => (Body::empty(), None),
                    false => {
                        let (body, verdict) = TimedBody::new(body, BODY_READ_MS_MAX);
                        (Body::new(body), Some(verdict))
                    }
                };
                let version = head.version;
                head::name_host(&mut head);
                let mut request = hyper::Request::from_parts(head, body);
                request.extensions_mut().insert(peer.clone());
                if let Some(verdict) = &verdict {
                    request.extensions_mut().insert(verdict.clone());
                }
                async move {
                    let response = tower::ServiceExt::oneshot(router, request).await;
                    // On HTTP/2 only the stream ends, and the connection stays open.
                    let is_unread = verdict.is_some_and(|verdict| verdict.is_unread());
                    unread.set(is_unread && version <= Version::HTTP_11);
                    Ok::<_, Infallible>(response.unwrap_or_else(|never| match never {}).map(divided))
                }
            }));
        match version {
            HttpVersion::One => {
                watcher.watch(self.protocols.http1().serve_connection(stream, service)).await?;
            }
            HttpVersion::Two => {
                watcher.watch(self.protocols.http2().serve_connection(stream, service)).await?;
            }
        }
        Ok(())
    }

    /// Closes a connection above the limit, with a response if the client understands one.
    fn send_away(&self, accepted: &Accepted, full: LimitReached) {
        let why = match full {
            LimitReached::All(count) => format!("{count} connections are open already"),
            LimitReached::Address(count) => format!("{count} connections of your address are open already"),
        };
        let answer = rejection(&Problem::new(Code::Overloaded, why));
        // Send only what fits into the buffer of the new connection: waiting would hold resources.
        let _ = match accepted {
            Accepted::Network(stream, _) if self.tls.is_none() => stream.try_write(&answer),
            Accepted::Network(..) => Ok(0),
            Accepted::Socket(stream) => stream.try_write(&answer),
        };
    }
}

/// Performs the TLS handshake. Returns none for a client without TLS, which gets an error response.
async fn shake_hands(mut stream: TcpStream, tls: &ClientTls) -> io::Result<Option<Handshake>> {
    let mut first = [0];
    if stream.peek(&mut first).await? > 0 && first != [TLS_HANDSHAKE] {
        stream.write_all(&rejection(&Problem::new(Code::TlsRequired, "this port speaks TLS"))).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    tls.answer(stream).await.map(Some)
}

#[cfg(test)]
mod tests {
    use ipam_api::resolve::connect;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn asked(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> String {
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn who() -> Router {
        let who = |request: axum::extract::Request| async move {
            format!("{:?}", request.extensions().get::<Peer>().unwrap())
        };
        Router::new().fallback(who)
    }

    #[tokio::test]
    async fn every_request_says_who_is_at_the_other_end() {
        let (stop, stopping) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let network = Listener::Network { listener, tls: None };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let socket = Listener::Socket(UnixListener::bind(&path).unwrap());
        let servers =
            [network, socket].map(|listener| tokio::spawn(serve(listener, 9, who(), stopping.clone())));
        let stream = connect(&address.to_string()).await.unwrap();
        let here = stream.local_addr().unwrap();
        let answer = asked(stream).await;
        let peer = Peer::Tcp { address: here, certificate: None };
        assert!(answer.ends_with(&format!("{peer:?}")), "{answer}");
        let answer = asked(UnixStream::connect(&path).await.unwrap()).await;
        let peer = Peer::Socket { uid: rustix::process::getuid().as_raw() };
        assert!(answer.ends_with(&format!("{peer:?}")), "{answer}");
        stop.send(true).unwrap();
        for server in servers {
            server.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_gets_a_response() {
        let (_stop, stopping) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(Listener::Network { listener, tls: None }, 1, who(), stopping));
        let first = connect(&address.to_string()).await.unwrap();
        let mut answer = String::new();
        let mut second = connect(&address.to_string()).await.unwrap();
        second.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"overloaded\""), "{answer}");
        assert!(asked(first).await.starts_with("HTTP/1.1 200 "), "the first one is still served");
    }
}
