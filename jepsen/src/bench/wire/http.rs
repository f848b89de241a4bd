//! Connection of HTTP/1.1 with keep-alive: prebuilt bytes out, one response in.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::response::{Head, Response, parse};

/// Free bytes of the buffer before each read.
const READ_BYTES: usize = 4096;

/// Connection to one server. It is opened by the first request, and again after an error.
#[derive(Debug)]
pub(in crate::bench) struct Connection {
    server: SocketAddr,
    /// Source address, so that a server tells clients apart.
    source: Option<Ipv4Addr>,
    stream: Option<TcpStream>,
    received: Vec<u8>,
}

impl Connection {
    /// Connection that is not yet open.
    pub(in crate::bench) fn new(server: SocketAddr) -> Self {
        Self { server, source: None, stream: None, received: Vec::new() }
    }

    /// Sets the source address of the connection.
    pub(in crate::bench) fn from(self, source: Ipv4Addr) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Opens the connection.
    pub(in crate::bench) async fn open(&mut self) -> Result<()> {
        if self.stream.is_none() {
            let socket = TcpSocket::new_v4()?;
            if let Some(source) = self.source {
                socket.bind((source, 0).into())?;
            }
            let stream = socket.connect(self.server).await.context("no connection")?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Sends a request and receives its response.
    pub(in crate::bench) async fn exchange(&mut self, request: &[u8]) -> Result<Response<'_>> {
        self.open().await?;
        let received = self.receive(request).await;
        if received.as_ref().map_or(true, |head| head.is_last) {
            self.stream = None;
        }
        let head = received?;
        let body = self.received.get(head.body_begin..head.body_begin + head.body_bytes).unwrap_or_default();
        Ok(Response { status: head.status, retry_after: head.retry_after, body })
    }

    async fn receive(&mut self, request: &[u8]) -> Result<Head> {
        let stream = self.stream.as_mut().context("the connection is not open")?;
        stream.write_all(request).await?;
        self.received.clear();
        let mut head = None;
        loop {
            self.received.reserve(READ_BYTES);
            if stream.read_buf(&mut self.received).await? == 0 {
                bail!("the server closed the connection");
            }
            if head.is_none() {
                head = parse(&self.received)?;
            }
            if let Some(head) = head
                && self.received.len() >= head.body_begin + head.body_bytes
            {
                return Ok(head);
            }
        }
    }
}

/// Bytes of a request with a JSON body, which may be empty.
pub(in crate::bench) fn request(method: &str, host: SocketAddr, path: &str, body: &str) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
    if !body.is_empty() {
        head.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
    }
    format!("{head}\r\n{body}").into_bytes()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn responses_in_pieces_are_received_whole_over_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, client) = listener.accept().await.unwrap();
            for body in ["one", "two"] {
                let mut bytes = vec![0; request("GET", server, "/x", "").len()];
                stream.read_exact(&mut bytes).await.unwrap();
                for piece in ["HTTP/1.1 200 OK\r\ncontent-", "length: 3\r\n\r\n", &body[..1], &body[1..]] {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
            client
        });
        let source = Ipv4Addr::new(127, 9, 8, 7);
        let mut connection = Connection::new(server).from(source);
        for body in ["one", "two"] {
            let bytes = request("GET", server, "/x", "");
            let response = connection.exchange(&bytes).await.unwrap();
            assert_eq!((response.status, response.body), (200, body.as_bytes()));
        }
        assert_eq!(serving.await.unwrap().ip(), source);
        assert!(connection.exchange(b"GET /x HTTP/1.1\r\n\r\n").await.is_err(), "the server is gone");
    }
}
