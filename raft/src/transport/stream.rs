//! A stream between peers: a unix socket, TLS, or TCP alone. All but TLS keep their own halves, which share no lock.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::TlsStream;

/// A stream to or from a peer.
#[derive(Debug)]
pub(crate) enum PeerStream {
    Plain(TcpStream),
    Socket(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half that is read.
#[derive(Debug)]
pub(crate) enum ReadHalf {
    Plain(tcp::OwnedReadHalf),
    Socket(unix::OwnedReadHalf),
    Tls(tokio::io::ReadHalf<Box<TlsStream<TcpStream>>>),
}

/// The half that is written.
#[derive(Debug)]
pub(crate) enum WriteHalf {
    Plain(tcp::OwnedWriteHalf),
    Socket(unix::OwnedWriteHalf),
    Tls(tokio::io::WriteHalf<Box<TlsStream<TcpStream>>>),
}

impl PeerStream {
    /// Both halves, for two tasks.
    pub(crate) fn into_split(self) -> (ReadHalf, WriteHalf) {
        match self {
            Self::Plain(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Plain(read), WriteHalf::Plain(write))
            }
            Self::Socket(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Socket(read), WriteHalf::Socket(write))
            }
            Self::Tls(stream) => {
                let (read, write) = tokio::io::split(stream);
                (ReadHalf::Tls(read), WriteHalf::Tls(write))
            }
        }
    }
}

macro_rules! reads {
    ($type:ident) => {
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
                    Self::Socket(stream) => Pin::new(stream).poll_read(context, buffer),
                    Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
                }
            }
        }
    };
}

macro_rules! writes {
    ($type:ident) => {
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
                    Self::Socket(stream) => Pin::new(stream).poll_write(context, bytes),
                    Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
                }
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    Self::Plain(stream) => Pin::new(stream).poll_flush(context),
                    Self::Socket(stream) => Pin::new(stream).poll_flush(context),
                    Self::Tls(stream) => Pin::new(stream).poll_flush(context),
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
                    Self::Socket(stream) => Pin::new(stream).poll_shutdown(context),
                    Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
                }
            }
        }
    };
}

reads!(PeerStream);
writes!(PeerStream);
reads!(ReadHalf);
writes!(WriteHalf);
