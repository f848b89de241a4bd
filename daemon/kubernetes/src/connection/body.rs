//! Bodies of bounded length.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tower::BoxError;

use super::signal::Signal;

/// Refusal of an answer, of a line of a watch, or of a request that is too long.
#[derive(Debug)]
pub(crate) struct TooLong {
    what: &'static str,
    bytes_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} has more than {} bytes", self.what, self.bytes_max)
    }
}

impl std::error::Error for TooLong {}

impl TooLong {
    pub(super) fn request(bytes_max: usize) -> Self {
        Self { what: "request", bytes_max }
    }

    /// True if the error or one of its causes is this refusal.
    pub(crate) fn is_in(error: &(dyn std::error::Error + 'static)) -> bool {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            if error.is::<Self>() || inner.is_some_and(|inner| Self::is_in(inner)) {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

/// Body of bounded length; for a watch, each line is bounded instead.
pub(crate) struct Bounded {
    body: reqwest::Body,
    bytes_max: usize,
    /// Number of bytes so far; for a watch, since the last end of a line.
    bytes: usize,
    watch: Option<Arc<Signal>>,
}

impl Bounded {
    pub(super) fn new(body: reqwest::Body, bytes_max: usize, watch: Option<Arc<Signal>>) -> Self {
        Self { body, bytes_max, bytes: 0, watch }
    }

    fn count(&mut self, data: &[u8]) -> Result<(), TooLong> {
        let end = match &self.watch {
            Some(signal) => {
                signal.note();
                data.iter().rposition(|byte| *byte == b'\n')
            }
            None => None,
        };
        self.bytes = match end {
            Some(end) => data.len() - end - 1,
            None => self.bytes.saturating_add(data.len()),
        };
        let bytes_max = self.bytes_max;
        if self.bytes > bytes_max { Err(TooLong { what: "answer", bytes_max }) } else { Ok(()) }
    }
}

impl Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(frame) = ready!(Pin::new(&mut this.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let counted = frame.map_err(BoxError::from).and_then(|frame| {
            if let Some(data) = frame.data_ref() {
                this.count(data)?;
            }
            Ok(frame)
        });
        Poll::Ready(Some(counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_bounded_as_a_whole_and_a_watch_by_its_lines() {
        let mut answer = Bounded::new(reqwest::Body::default(), 8, None);
        assert!(answer.count(b"12345\n7").is_ok());
        assert!(answer.count(b"89").is_err());
        let signal = Arc::new(Signal::new("pods"));
        let mut watch = Bounded::new(reqwest::Body::default(), 8, Some(Arc::clone(&signal)));
        assert!(signal.heard().is_none());
        for data in [&b"12345\n7"[..], b"890\n123", b"\n", b"12345678"] {
            assert!(watch.count(data).is_ok());
        }
        assert!(signal.heard().is_some());
        let error = std::io::Error::other(watch.count(b"9").unwrap_err());
        assert!(TooLong::is_in(&error));
        assert!(!TooLong::is_in(&std::io::Error::other("else")));
    }
}
