//! Connection to the NSP service: HTTP/2 over TCP, with TLS if the front end has it.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use ipam_api::resolve;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::body::Body;

use crate::settings::NspSettings;

/// Time limit of a connection with its handshakes, and of the answer to a ping.
const CONNECT: Duration = Duration::from_secs(10);

/// TLS of the present moment, since certificates are replaced; none for plain connections.
pub type Tls = Arc<dyn Fn() -> Option<Arc<ClientConfig>> + Send + Sync>;

/// Connection as tonic's clients use it.
#[derive(Debug, Clone)]
pub(super) struct Connection(http2::SendRequest<Body>);

impl tower::Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.send_request(request).boxed()
    }
}

/// Connects, and returns the connection with the origin of its requests.
///
/// # Errors
/// The reason, for the log.
pub(super) async fn connect(
    nsp: &NspSettings,
    tls: Option<Arc<ClientConfig>>,
) -> Result<(Connection, Uri), String> {
    let connected = timeout(CONNECT, async {
        let stream = resolve::connect(&nsp.address).await.map_err(|error| error.to_string())?;
        match tls {
            None => shake_hands(nsp, stream).await,
            Some(tls) => {
                let host = nsp.address.rsplit_once(':').map_or(nsp.address.as_str(), |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
                let stream = TlsConnector::from(tls).connect(name, stream).await;
                shake_hands(nsp, stream.map_err(|error| error.to_string())?).await
            }
        }
    });
    let connection = connected.await.map_err(|_| "no connection in time".to_owned())??;
    // The scheme of the origin is a formality: the connection stands.
    let origin = format!("http://{}", nsp.address)
        .parse()
        .map_err(|error: http::uri::InvalidUri| error.to_string())?;
    Ok((connection, origin))
}

/// Begins HTTP/2. The connection ends with its last request, or when the server answers no ping.
async fn shake_hands(
    nsp: &NspSettings,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Connection, String> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).keep_alive_interval(nsp.keepalive).keep_alive_timeout(CONNECT);
    let (sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the NSP service ended");
        }
    });
    Ok(Connection(sender))
}
