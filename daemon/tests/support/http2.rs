//! HTTP/2 client of the tests, with control of each stream.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, StatusCode};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use ipam_api::Problem;
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::LONG;

/// One connection.
#[derive(Clone)]
pub(crate) struct Http2(SendRequest<Bytes>);

/// Answer as it was sent.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    #[track_caller]
    pub(crate) fn problem(&self) -> Problem {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http2 {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self::from("127.0.0.1:0", address).await
    }

    /// Connection from another address of this machine.
    pub(crate) async fn from(local: &str, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(local.parse().unwrap()).unwrap();
        let (client, connection) =
            h2::client::handshake(socket.connect(address).await.unwrap()).await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    /// Begins a request; its body follows, unless `ends`.
    pub(crate) async fn begin(
        &self,
        request: Request<()>,
        ends: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut client = timeout(LONG, self.0.clone().ready()).await.expect("no place for a stream")?;
        client.send_request(request, ends)
    }

    pub(crate) async fn send(
        &self,
        request: Request<()>,
        body: Option<&[u8]>,
    ) -> Result<Answered, h2::Error> {
        let (response, mut stream) = self.begin(request, body.is_none()).await?;
        if let Some(body) = body {
            stream.send_data(Bytes::copy_from_slice(body), true)?;
        }
        answered(response).await
    }
}

/// Waits for the whole answer.
pub(crate) async fn answered(response: ResponseFuture) -> Result<Answered, h2::Error> {
    let whole = async {
        let (head, body) = response.await?.into_parts();
        Ok(Answered { status: head.status, headers: head.headers, body: read(body).await? })
    };
    timeout(LONG, whole).await.expect("the member does not answer")
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut read = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        read.extend_from_slice(&piece);
    }
    Ok(read)
}

/// Request to a server of this name.
pub(crate) fn request(method: &str, authority: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder().method(method).uri(format!("http://{authority}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}
