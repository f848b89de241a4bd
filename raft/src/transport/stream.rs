//! A stream between peers: a unix socket, TLS, or TCP alone. All but TLS keep their own halves, which share
//! no lock.

use tokio::io::{AsyncRead, AsyncWrite, Join, join, split};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

use crate::simulation::Halves;

/// The half that is read.
pub(super) type ReadHalf = Box<dyn AsyncRead + Send + Sync + Unpin>;
/// The half that is written.
pub(super) type WriteHalf = Box<dyn AsyncWrite + Send + Sync + Unpin>;
/// A stream to or from a peer.
pub(crate) type PeerStream = Join<ReadHalf, WriteHalf>;

pub(super) fn simulated((read, write): Halves) -> PeerStream {
    join(read, write)
}

pub(super) fn plain(stream: TcpStream) -> PeerStream {
    let (read, write) = stream.into_split();
    join(Box::new(read), Box::new(write))
}

pub(super) fn socket(stream: UnixStream) -> PeerStream {
    let (read, write) = stream.into_split();
    join(Box::new(read), Box::new(write))
}

pub(super) fn tls(stream: TlsStream<TcpStream>) -> PeerStream {
    let (read, write) = split(stream);
    join(Box::new(read), Box::new(write))
}
