//! Head of an HTTP/1.1 response.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// End of a head.
const END: &[u8] = b"\r\n\r\n";

/// Head with the parts that a load generator needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Begin of the body in the received bytes.
    pub(super) body_begin: usize,
    pub(super) body_bytes: usize,
    pub(super) retry_after: Option<Duration>,
    /// True if the server closes the connection after the response.
    pub(super) is_last: bool,
}

/// Response whose body is still in the buffer of its connection.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct Response<'a> {
    pub(in crate::bench) status: u16,
    pub(in crate::bench) retry_after: Option<Duration>,
    pub(in crate::bench) body: &'a [u8],
}

/// Reads the head at the begin of the received bytes; none if it is not complete.
pub(super) fn parse(received: &[u8]) -> Result<Option<Head>> {
    let Some(end) = received.windows(END.len()).position(|window| window == END) else { return Ok(None) };
    let text = std::str::from_utf8(received.get(..end).unwrap_or_default())?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?;
    let status: u16 = status.parse().context("no status")?;
    let mut head =
        Head { status, body_begin: end + END.len(), body_bytes: 0, retry_after: None, is_last: false };
    let mut has_length = matches!(status, 204 | 304);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            (head.body_bytes, has_length) = (value.parse()?, true);
        } else if name.eq_ignore_ascii_case("retry-after") {
            head.retry_after = value.parse().ok().map(Duration::from_secs);
        } else if name.eq_ignore_ascii_case("connection") {
            head.is_last = value.eq_ignore_ascii_case("close");
        }
    }
    if !has_length {
        bail!("a response without Content-Length");
    }
    Ok(Some(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_complete() {
        let bytes = b"HTTP/1.1 429 Too Many\r\nContent-Length: 5\r\nretry-after: 2\r\n\r\nabcde";
        for end in 0..bytes.len() - 5 {
            assert_eq!(parse(&bytes[..end]).unwrap(), None);
        }
        let head = parse(bytes).unwrap().unwrap();
        assert_eq!((head.status, head.body_begin, head.body_bytes), (429, bytes.len() - 5, 5));
        assert_eq!((head.retry_after, head.is_last), (Some(Duration::from_secs(2)), false));
    }

    #[test]
    fn a_response_without_body_needs_no_length_and_others_do() {
        let head = parse(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.status, head.body_bytes, head.is_last), (204, 0, true));
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }
}
