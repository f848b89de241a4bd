//! HTTP/2 responses, and the cancellation of a response that the client does not read.
//!
//! A client may read its connection and yet accept no data of one stream (flow control). Then the connection
//! shows no stalled reader. So each response is sent in pieces instead of being buffered as a whole, and is
//! cancelled when the client accepts no piece for too long.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use hyper::rt::Executor;
use ipam_api::limits::{HTTP2_FRAME_BYTES_MAX, HTTP2_LAST_PIECE_BYTES_MAX};
use tokio::time::{Sleep, sleep};

tokio::task_local! {
    /// Progress of the response that this task sends.
    static PROGRESS: Progress;
}

/// Number of the piece that waits for the client; zero if no piece waits.
#[derive(Debug, Clone, Default)]
struct Progress(Arc<AtomicU64>);

/// Executor that runs one task for each stream of HTTP/2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Responses {
    /// Timeout of a piece that the client doesn't accept.
    pub(super) stall_max: Duration,
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Responses {
    fn execute(&self, response: F) {
        let (progress, limit) = (Progress::default(), self.stall_max);
        tokio::spawn(PROGRESS.scope(progress.clone(), async move {
            let mut response = pin!(response);
            let mut stall = Stall { progress, limit, piece: 0, over: None };
            // Dropping the response resets its stream.
            poll_fn(|context| match response.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => stall.poll(context),
            })
            .await;
        }));
    }
}

/// Time limit of a piece.
struct Stall {
    progress: Progress,
    limit: Duration,
    /// Piece that waited at the last poll.
    piece: u64,
    over: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let piece = self.progress.0.load(Relaxed);
        if piece != self.piece {
            (self.piece, self.over) = (piece, None);
        }
        if piece == 0 {
            return Poll::Pending;
        }
        let limit = self.limit;
        self.over.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(context)
    }
}

/// Divides the body of an HTTP/2 response into pieces. Other bodies stay whole.
pub(super) fn divided(body: Body) -> Body {
    match PROGRESS.try_with(Progress::clone) {
        Ok(progress) => Body::new(Divided { body, rest: Bytes::new(), pieces: 0, progress }),
        Err(_) => body,
    }
}

/// Body in pieces.
struct Divided {
    body: Body,
    /// Data received from the body and not yet sent.
    rest: Bytes,
    pieces: u64,
    progress: Progress,
}

impl hyper::body::Body for Divided {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        // A poll means that the client has accepted the previous piece.
        this.progress.0.store(0, Relaxed);
        if this.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        // The last piece is queued once the client accepts one byte, and has no time limit from then on.
        let is_last = this.body.is_end_stream() && this.rest.len() > HTTP2_LAST_PIECE_BYTES_MAX;
        let kept = if is_last { HTTP2_LAST_PIECE_BYTES_MAX } else { 0 };
        let piece = this.rest.split_to((this.rest.len() - kept).min(HTTP2_FRAME_BYTES_MAX));
        this.pieces += 1;
        this.progress.0.store(this.pieces, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::*;

    #[tokio::test]
    async fn a_divided_body_is_the_same_in_small_pieces() {
        let bytes: Vec<u8> = (0..=250).cycle().take(HTTP2_FRAME_BYTES_MAX * 2 + 5).collect();
        for bytes in [bytes, b"small".to_vec(), Vec::new()] {
            let body = Body::from(bytes.clone());
            let mut body = PROGRESS.sync_scope(Progress::default(), || divided(body));
            let mut read = Vec::new();
            while !body.is_end_stream() {
                assert_eq!(body.size_hint().exact(), Some((bytes.len() - read.len()) as u64));
                let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
                assert!((1..=HTTP2_FRAME_BYTES_MAX).contains(&piece.len()));
                read.extend_from_slice(&piece);
            }
            assert_eq!(read, bytes);
        }
    }

    #[tokio::test]
    async fn only_a_piece_that_waits_has_a_time_limit() {
        let progress = Progress::default();
        let limit = Duration::from_millis(4_000);
        let mut stall = Stall { progress: progress.clone(), limit, piece: 0, over: None };
        let mut wait = async |piece: u64, within: Duration| {
            progress.0.store(piece, Relaxed);
            tokio::time::timeout(within, poll_fn(|context| stall.poll(context))).await.is_ok()
        };
        // Two such waits exceed the limit, and a slow machine has more than a second to end one in time.
        let short = Duration::from_millis(2_400);
        for piece in [1, 2, 0, 3] {
            assert!(!wait(piece, short).await, "{piece}");
        }
        assert!(wait(3, Duration::from_secs(30)).await);
    }
}
