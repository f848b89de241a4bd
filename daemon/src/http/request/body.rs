//! Request body with a time limit and a record of its reading. The limit begins with the first wait for data,
//! so that bodies that arrive with their heads need no timer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Sleep, sleep};

/// Body that ends with [`TooSlow`] after its time limit.
pub(in crate::http) struct TimedBody {
    body: Incoming,
    limit: Duration,
    over: Option<Pin<Box<Sleep>>>,
    verdict: Verdict,
}

/// Reports about the body of a request: too slow, or not read at all. It is an extension of the request,
/// since extractors drop the cause of a failure.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Verdict(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    too_slow: AtomicBool,
    read: AtomicBool,
}

impl Verdict {
    pub(super) fn too_slow(&self) -> bool {
        self.0.too_slow.load(Ordering::Relaxed)
    }

    /// True if the end of the body has not been read.
    pub(in crate::http) fn is_unread(&self) -> bool {
        !self.0.read.load(Ordering::Relaxed)
    }
}

/// Error of a body that exceeded its time limit.
#[derive(Debug)]
pub(in crate::http) struct TooSlow;

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body did not come in time")
    }
}

impl std::error::Error for TooSlow {}

impl TimedBody {
    pub(in crate::http) fn new(body: Incoming, limit_ms: u64) -> (Self, Verdict) {
        let verdict = Verdict::default();
        let limit = Duration::from_millis(limit_ms);
        (Self { body, limit, over: None, verdict: verdict.clone() }, verdict)
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if frame.is_none() || this.body.is_end_stream() {
                this.verdict.0.read.store(true, Ordering::Relaxed);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = this.limit;
        let over = this.over.get_or_insert_with(|| Box::pin(sleep(limit)));
        over.as_mut().poll(context).map(|()| {
            this.verdict.0.too_slow.store(true, Ordering::Relaxed);
            Some(Err(TooSlow.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
