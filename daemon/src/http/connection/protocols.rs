//! HTTP/1.1 and HTTP/2 of a listener: limits, and the version that a client speaks.

use std::io;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use ipam_api::limits::{
    GRPC_HEAD_BYTES_MAX, GRPC_STREAMS_MAX, HEAD_BYTES_MAX, HEAD_READ_MS_MAX, HEADERS_MAX,
    HTTP2_CONNECTION_WINDOW_BYTES, HTTP2_ERROR_RESETS_MAX, HTTP2_FRAME_BYTES_MAX, HTTP2_PING_MS,
    HTTP2_PONG_MS_MAX, HTTP2_RESETS_PENDING_MAX, HTTP2_SEND_BUFFER_BYTES_MAX, HTTP2_STREAM_WINDOW_BYTES,
    HTTP2_STREAMS_MAX, WRITE_STALL_MS_MAX,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::responses::Responses;

/// First bytes of a client that speaks HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length in bytes of the preface and of the head of the frame that must follow it.
const OPENING_BYTES: usize = PREFACE.len() + 9;

/// Limits of HTTP on one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocols {
    /// Concurrent streams of one HTTP/2 connection.
    pub(super) streams_max: u32,
    /// Bytes of the head of one HTTP/2 request.
    pub(super) head_bytes_max: usize,
    /// Timeout of the first bytes of a connection, and of each head over HTTP/1.1.
    pub(super) head_read_max: Duration,
    /// Timeout of a piece of a response that the client doesn't accept.
    pub(super) stall_max: Duration,
    /// Silence of a client after which the server sends a ping. `pong_max` is the timeout of the answer.
    pub(super) ping: Duration,
    pub(super) pong_max: Duration,
}

/// HTTP version of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersion {
    One,
    Two,
}

impl Protocols {
    /// Limits for clients of the REST API.
    #[must_use]
    pub const fn rest() -> Self {
        Self {
            streams_max: HTTP2_STREAMS_MAX,
            head_bytes_max: HEAD_BYTES_MAX,
            head_read_max: Duration::from_millis(HEAD_READ_MS_MAX),
            stall_max: Duration::from_millis(WRITE_STALL_MS_MAX),
            ping: Duration::from_millis(HTTP2_PING_MS),
            pong_max: Duration::from_millis(HTTP2_PONG_MS_MAX),
        }
    }

    /// Limits for clients of gRPC.
    #[must_use]
    pub const fn grpc() -> Self {
        Self { streams_max: GRPC_STREAMS_MAX, head_bytes_max: GRPC_HEAD_BYTES_MAX, ..Self::rest() }
    }

    pub(super) fn http1(self) -> http1::Builder {
        let mut http = http1::Builder::new();
        // The time limit of a head starts with the connection, so it also ends idle connections.
        http.timer(TokioTimer::new()).header_read_timeout(self.head_read_max);
        http.max_header_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX).max_buf_size(2 * HEAD_BYTES_MAX);
        http
    }

    pub(super) fn http2(self) -> http2::Builder<Responses> {
        let small = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut http = http2::Builder::new(Responses { stall_max: self.stall_max });
        // Pings end connections of unreachable clients. Clients may send any number of pings, by which gRPC
        // clients detect dead servers.
        http.timer(TokioTimer::new()).keep_alive_interval(self.ping).keep_alive_timeout(self.pong_max);
        http.max_concurrent_streams(self.streams_max).max_header_list_size(small(self.head_bytes_max));
        http.max_frame_size(small(HTTP2_FRAME_BYTES_MAX));
        http.initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES);
        http.initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES);
        http.max_send_buf_size(HTTP2_SEND_BUFFER_BYTES_MAX);
        http.max_pending_accept_reset_streams(HTTP2_RESETS_PENDING_MAX);
        http.max_local_error_reset_streams(HTTP2_ERROR_RESETS_MAX);
        http
    }
}

/// Reads the first bytes of a connection. Returns the HTTP version and the bytes.
///
/// # Errors
/// For a client that does not send enough bytes to tell the version in time.
pub(super) async fn read_version(
    stream: &mut (impl AsyncRead + Unpin),
    limit: Duration,
) -> io::Result<(HttpVersion, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(OPENING_BYTES);
    let reading = async {
        loop {
            let missing = OPENING_BYTES.saturating_sub(bytes.len()) as u64;
            let read = (&mut *stream).take(missing).read_buf(&mut bytes).await?;
            let compared = bytes.len().min(PREFACE.len());
            if bytes.get(..compared) != PREFACE.get(..compared) {
                return Ok::<_, io::Error>(HttpVersion::One);
            }
            if read == 0 || bytes.len() >= OPENING_BYTES {
                return Ok(HttpVersion::Two);
            }
        }
    };
    let version = timeout(limit, reading).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    Ok((version, bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    async fn version_of(pieces: &[&[u8]]) -> (HttpVersion, Vec<u8>) {
        let (mut client, mut server) = duplex(OPENING_BYTES);
        let (read, ()) = tokio::join!(read_version(&mut server, Duration::from_secs(30)), async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        read.unwrap()
    }

    #[tokio::test]
    async fn the_first_bytes_tell_the_version() {
        let settings = [0; 9];
        let opening = [PREFACE, &settings].concat();
        for pieces in [&[&opening[..]][..], &[PREFACE, &settings], &[&opening[..5], &opening[5..]]] {
            assert_eq!(version_of(pieces).await, (HttpVersion::Two, opening.clone()), "{pieces:?}");
        }
        for pieces in [&[&b"G"[..]][..], &[b"P", b"UT /"], &[&opening[..23], b"x"], &[b"\r\n"]] {
            assert_eq!(version_of(pieces).await, (HttpVersion::One, pieces.concat()), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn half_an_opening_is_waited_for_no_longer_than_the_limit() {
        let limit = Duration::from_millis(50);
        for opening in [&b""[..], b"P", &PREFACE[..23], PREFACE] {
            let (mut client, mut server) = duplex(OPENING_BYTES);
            client.write_all(opening).await.unwrap();
            let begun = Instant::now();
            let error = read_version(&mut server, limit).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(begun.elapsed() >= limit, "{opening:?}");
        }
    }
}
