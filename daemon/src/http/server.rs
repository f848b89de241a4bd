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

/// Pause after an accept that failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long requests that run may take to finish once the server stops.
const FINISH: Duration = Duration::from_secs(5);

/// What the loop accepts from.
pub trait Accept: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next one.
    fn accept(&self) -> impl Future<Output = std::io::Result<Self::Stream>> + Send;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> std::io::Result<UnixStream> {
        UnixListener::accept(self).await.map(|(stream, _)| stream)
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
        let Some((stream, permit)) = accepted else { continue };
        let router = router.clone();
        let service = TowerToHyperService::new(tower::service_fn(move |request: hyper::Request<_>| {
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
) -> Option<(Listener::Stream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok(stream) => Some((stream, permit)),
        Err(error) => {
            tracing::warn!(%error, "a connection can't be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
