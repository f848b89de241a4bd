//! The accept loop: bounded heads and connections, and an orderly end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use ipam_api::limits::{CONNECTIONS_MAX, HEAD_READ_MS_MAX};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::peer::Peer;

/// Pause after an accept that failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long requests that run may take to finish once the server stops.
const FINISH: Duration = Duration::from_secs(5);

/// What the loop accepts from.
pub trait Accept: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next one, and who is at its other end.
    fn accept(&self) -> impl Future<Output = std::io::Result<(Self::Stream, Peer)>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> std::io::Result<(TcpStream, Peer)> {
        let (stream, address) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok((stream, Peer::Tcp { address, certificate: None }))
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> std::io::Result<(UnixStream, Peer)> {
        let (stream, _) = UnixListener::accept(self).await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Peer::Socket { uid }))
    }
}

/// Serves until `stop` is true and what runs has finished.
pub async fn serve(listener: impl Accept, router: Router, mut stop: watch::Receiver<bool>) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(HEAD_READ_MS_MAX));
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else { continue };
        let router = router.clone();
        let service = TowerToHyperService::new(tower::service_fn(move |mut request: hyper::Request<_>| {
            request.extensions_mut().insert(peer.clone());
            let router = router.clone();
            async move {
                let response = tower::ServiceExt::oneshot(router, request).await;
                Ok::<_, Infallible>(response.unwrap_or_else(|never| match never {}))
            }
        }));
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a client's connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(FINISH, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and are dropped");
    }
}

/// The next connection, once there is room for one.
async fn accept<Listener: Accept>(
    listener: &Listener,
    room: &Arc<Semaphore>,
) -> Option<(Listener::Stream, Peer, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, permit)),
        Err(error) => {
            tracing::warn!(%error, "a connection can't be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

#[cfg(test)]
mod tests {
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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let socket = UnixListener::bind(&path).unwrap();
        let servers = [
            tokio::spawn(serve(listener, who(), stopping.clone())),
            tokio::spawn(serve(socket, who(), stopping)),
        ];
        let stream = TcpStream::connect(address).await.unwrap();
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
}
