//! Unary calls of gRPC over a connection of HTTP/2 that several clients may share.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use bytes::{BufMut as _, Bytes, BytesMut};
use h2::client::SendRequest;
use http::HeaderMap;
use prost::Message;
use tokio::net::TcpStream;

/// Bytes before a message: a flag for compression, and the length.
const PREFIX_BYTES: usize = 5;
/// Flow-control window of a stream and of the connection, so that small responses wait for no update.
const WINDOW_BYTES: u32 = 1 << 20;

/// Connection to one server.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Channel {
    sender: SendRequest<Bytes>,
    server: SocketAddr,
}

impl Channel {
    /// Opens a connection. A task of this thread drives it until all clones are dropped.
    pub(in crate::bench) async fn open(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).await.context("no connection")?;
        stream.set_nodelay(true)?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let (sender, connection) = builder.handshake(stream).await?;
        tokio::task::spawn_local(async move {
            // Calls fail when the connection has ended.
            let _ended = connection.await;
        });
        Ok(Self { sender, server })
    }

    /// Calls a method, named as `/SERVICE/METHOD`.
    pub(in crate::bench) async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        request: &Q,
    ) -> Result<A> {
        let head = http::Request::post(format!("http://{}{method}", self.server))
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .header(http::header::TE, "trailers")
            .body(())?;
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut body) = sender.send_request(head, false)?;
        body.send_data(framed(request)?, true)?;
        let (head, mut body) = response.await?.into_parts();
        let mut answer = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            body.flow_control().release_capacity(chunk.len())?;
            answer.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await?;
        // A response without a message has its status in the headers.
        check(trailers.as_ref().unwrap_or(&head.headers))?;
        Ok(A::decode(message(&answer)?)?)
    }
}

fn framed(request: &impl Message) -> Result<Bytes> {
    let bytes = request.encoded_len();
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + bytes);
    frame.put_u8(0);
    frame.put_u32(bytes.try_into()?);
    request.encode(&mut frame)?;
    Ok(frame.freeze())
}

/// Returns the only message of a response.
fn message(answer: &[u8]) -> Result<&[u8]> {
    let Some((&[flag, a, b, c, d], message)) = answer.split_first_chunk::<PREFIX_BYTES>() else {
        bail!("an answer without a message");
    };
    if flag != 0 {
        bail!("a compressed message");
    }
    if usize::try_from(u32::from_be_bytes([a, b, c, d]))? != message.len() {
        bail!("an answer that is not one message");
    }
    Ok(message)
}

/// Refuses a status other than `OK`.
fn check(headers: &HeaderMap) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        Some("0") => Ok(()),
        status => bail!("status {}: {}", status.unwrap_or("-"), text("grpc-message").unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::etcd::PutRequest;
    use super::*;

    #[test]
    fn a_frame_has_a_flag_a_length_and_the_message() {
        let put = PutRequest { key: b"k".to_vec(), value: b"v".to_vec() };
        let frame = framed(&put).unwrap();
        assert_eq!(&frame[..], b"\x00\x00\x00\x00\x06\x0a\x01k\x12\x01v");
        assert_eq!(message(&frame).unwrap(), &frame[PREFIX_BYTES..]);
        assert!(message(&frame[..4]).is_err());
        assert!(message(&frame[..frame.len() - 1]).is_err());
        assert!(message(b"\x01\x00\x00\x00\x00").is_err());
        assert_eq!(message(b"\x00\x00\x00\x00\x00").unwrap(), b"");
    }

    #[test]
    fn only_the_status_ok_is_a_success() {
        let mut headers = HeaderMap::new();
        assert!(check(&headers).is_err());
        headers.insert("grpc-status", "0".parse().unwrap());
        check(&headers).unwrap();
        headers.insert("grpc-status", "8".parse().unwrap());
        headers.insert("grpc-message", "quota".parse().unwrap());
        assert_eq!(check(&headers).unwrap_err().to_string(), "status 8: quota");
    }
}
