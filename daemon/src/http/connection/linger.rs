//! An orderly end for a connection whose client still sends: the end of the answer is sent, and what comes after it is
//! discarded for a while. Closing at once would reset the connection, and the client could lose the answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ipam_api::limits::{LINGER_BYTES_MAX, LINGER_MS_MAX};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes that are discarded at once.
const PIECE_BYTES: usize = 8 << 10;

/// Mark of a connection whose last request was answered before its body had been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(in crate::http) fn set(&self, unread: bool) {
        self.0.store(unread, Relaxed);
    }
}

/// A stream that is closed in order also when its reader has left something unread.
#[derive(Debug)]
pub(super) struct Lingering<S> {
    stream: S,
    unread: Unread,
    /// The write half is closed.
    shut: bool,
    discarded: usize,
    over: Option<Pin<Box<Sleep>>>,
}

impl<S> Lingering<S> {
    pub(in crate::http) fn new(stream: S, unread: Unread) -> Self {
        Self { stream, unread, shut: false, discarded: 0, over: None }
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Discards what comes until the client closes too, or it has been enough.
    fn discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut piece = [std::mem::MaybeUninit::uninit(); PIECE_BYTES];
        while self.discarded < LINGER_BYTES_MAX {
            let mut buffer = ReadBuf::uninit(&mut piece);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.discarded += buffer.filled().len(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    let over = self
                        .over
                        .get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(LINGER_MS_MAX))));
                    return over.as_mut().poll(context);
                }
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.shut {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
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
    async fn what_comes_after_the_answer_is_discarded_up_to_a_bound() {
        for (sends, taken) in [(3 * PIECE_BYTES, 3 * PIECE_BYTES), (2 * LINGER_BYTES_MAX, LINGER_BYTES_MAX)] {
            let (mut client, server) = duplex(PIECE_BYTES);
            let unread = Unread::default();
            unread.set(true);
            let mut server = Lingering::new(server, unread);
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
        Lingering::new(server, unread).shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_with_nothing_unread_ends_at_once() {
        let (client, server) = duplex(64);
        let mut server = Lingering::new(server, Unread::default());
        server.shutdown().await.unwrap();
        assert!(server.over.is_none());
        drop(client);
    }
}
