//! Client streams: a timeout for clients that don't read, and a graceful close for others.
//!
//! A client that still sends gets the whole response, and its input is discarded for a while. Closing at once
//! would reset the connection, and the client could lose the response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use ipam_api::limits::{LINGER_BYTES_MAX, LINGER_MS_MAX, WRITE_STALL_MS_MAX};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Size of the buffer for discarded bytes.
const PIECE_BYTES: usize = 8 << 10;

/// Marks a connection whose last request was answered before its body had been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(super) fn set(&self, unread: bool) {
        self.0.store(unread, Relaxed);
    }
}

/// Client stream with time limits. No timer runs while the client reads.
///
/// A write that waits too long fails, since unread output would fill the memory. The close is graceful
/// even if the request body was not read to its end.
#[derive(Debug)]
pub(super) struct ClientStream<S> {
    stream: S,
    /// First bytes of the client, from which the HTTP version was determined.
    opening: Bytes,
    /// Timer of output that waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
    unread: Unread,
    /// True once the write half is closed.
    shut: bool,
    discarded: usize,
    over: Option<Pin<Box<Sleep>>>,
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S, opening: Vec<u8>, unread: Unread) -> Self {
        let opening = opening.into();
        Self { stream, opening, stalled: None, unread, shut: false, discarded: 0, over: None }
    }

    /// Passes on the result of a write. Fails when writes have been pending for too long.
    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| timer(WRITE_STALL_MS_MAX));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn timer(limit_ms: u64) -> Pin<Box<Sleep>> {
    Box::pin(sleep(Duration::from_millis(limit_ms)))
}

impl<S: AsyncRead + Unpin> ClientStream<S> {
    /// Discards input until the client closes its side, or a limit on bytes or time is reached.
    fn discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut piece = [std::mem::MaybeUninit::uninit(); PIECE_BYTES];
        while self.discarded < LINGER_BYTES_MAX {
            let mut buffer = ReadBuf::uninit(&mut piece);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.discarded += buffer.filled().len(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    return self.over.get_or_insert_with(|| timer(LINGER_MS_MAX)).as_mut().poll(context);
                }
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.opening.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let read = this.opening.split_to(this.opening.len().min(buffer.remaining()));
        buffer.put_slice(&read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, pieces);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.judge(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.shut {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.judge(shut, context))?;
            this.shut = true;
        }
        if this.unread.0.load(Relaxed) { this.discard(context).map(Ok) } else { Poll::Ready(Ok(())) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn bytes_after_the_response_are_discarded_up_to_a_bound() {
        for (sends, taken) in [(3 * PIECE_BYTES, 3 * PIECE_BYTES), (2 * LINGER_BYTES_MAX, LINGER_BYTES_MAX)] {
            let (mut client, server) = duplex(PIECE_BYTES);
            let unread = Unread::default();
            unread.set(true);
            let mut server = ClientStream::new(server, Vec::new(), unread);
            let client = tokio::spawn(async move {
                let sent = client.write_all(&vec![7; sends]).await;
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                (sent.is_ok(), answer)
            });
            server.write_all(b"no").await.unwrap();
            tokio::spawn(async move {
                server.shutdown().await.unwrap();
                assert_eq!(server.discarded, taken);
            });
            let (sent, answer) = client.await.unwrap();
            assert_eq!((sent, answer.as_slice()), (sends == taken, b"no".as_slice()));
        }
    }

    #[tokio::test]
    async fn a_client_that_stays_is_waited_for_no_longer_than_the_bound() {
        let (_client, server) = duplex(64);
        let unread = Unread::default();
        unread.set(true);
        ClientStream::new(server, Vec::new(), unread).shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_with_nothing_unread_ends_at_once() {
        let (client, server) = duplex(64);
        let mut server = ClientStream::new(server, Vec::new(), Unread::default());
        server.shutdown().await.unwrap();
        assert!(server.over.is_none());
        drop(client);
    }
}
