//! Listener with TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::serve::Listener;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Listener whose connections have finished their handshake.
pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    /// Unfinished handshakes, each in its own task: a slow client delays no other one.
    handshakes: JoinSet<io::Result<(TlsStream<TcpStream>, SocketAddr)>>,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        Self { listener, acceptor: config.into(), handshakes: JoinSet::new() }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    if let Ok((stream, address)) = accepted {
                        let stream = self.acceptor.accept(stream);
                        let handshake = async move { stream.await.map(|stream| (stream, address)) };
                        self.handshakes.spawn(handshake);
                    }
                }
                Some(finished) = self.handshakes.join_next() => {
                    // A connection whose TLS handshake fails is dropped.
                    if let Ok(Ok(connection)) = finished {
                        return connection;
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
