//! Unary calls of gRPC over a unix socket: one connection each, so that the runtime may be restarted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message;
use tokio::net::UnixStream;

use super::messages::{
    Empty, ListPodSandboxRequest, ListPodSandboxResponse, PodSandbox, PodSandboxConfig, PodSandboxFilter,
    PodSandboxStatusRequest, PodSandboxStatusResponse, RunPodSandboxRequest, SandboxId,
};

/// Time limit of a call. Its caller repeats the call to a stuck runtime.
const CALL: Duration = Duration::from_secs(30);
/// Bytes before a message: a flag and the length.
const PREFIX_BYTES: usize = 5;

/// Client of a container runtime.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    socket: PathBuf,
}

impl Client {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Creates a sandbox, and returns its id.
    pub(crate) async fn run(&self, config: PodSandboxConfig) -> Result<String> {
        let request = RunPodSandboxRequest { config: Some(config) };
        Ok(self.call::<_, SandboxId>("RunPodSandbox", request).await?.id)
    }

    pub(crate) async fn stop(&self, id: &str) -> Result<()> {
        self.call::<_, Empty>("StopPodSandbox", SandboxId { id: id.to_owned() }).await.map(drop)
    }

    pub(crate) async fn remove(&self, id: &str) -> Result<()> {
        self.call::<_, Empty>("RemovePodSandbox", SandboxId { id: id.to_owned() }).await.map(drop)
    }

    /// Sandboxes with a label, in any state.
    pub(crate) async fn list(&self, label: (&str, &str)) -> Result<Vec<PodSandbox>> {
        let label_selector = BTreeMap::from([(label.0.to_owned(), label.1.to_owned())]);
        let request = ListPodSandboxRequest { filter: Some(PodSandboxFilter { label_selector }) };
        Ok(self.call::<_, ListPodSandboxResponse>("ListPodSandbox", request).await?.items)
    }

    pub(crate) async fn status(&self, id: &str) -> Result<PodSandboxStatusResponse> {
        self.call("PodSandboxStatus", PodSandboxStatusRequest { id: id.to_owned(), verbose: true }).await
    }

    async fn call<Q: Message, A: Message + Default>(&self, method: &str, request: Q) -> Result<A> {
        let answer = tokio::time::timeout(CALL, self.exchange(method, &request));
        answer.await.with_context(|| format!("{method}: no answer"))?.with_context(|| method.to_owned())
    }

    async fn exchange<Q: Message, A: Message + Default>(&self, method: &str, request: &Q) -> Result<A> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (client, connection) = h2::client::handshake(stream).await?;
        let connection = tokio::spawn(connection);
        let url = format!("http://localhost/runtime.v1.RuntimeService/{method}");
        let head = http::Request::post(url)
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .header(http::header::TE, "trailers")
            .body(())?;
        let (response, mut body) = client.ready().await?.send_request(head, false)?;
        body.send_data(framed(request)?, true)?;
        let (head, mut body) = response.await?.into_parts();
        let mut answer = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            body.flow_control().release_capacity(chunk.len())?;
            answer.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await?;
        connection.abort();
        // An answer without a message has its status in the head.
        check(trailers.as_ref().unwrap_or(&head.headers))?;
        if answer.len() < PREFIX_BYTES {
            bail!("the answer has no message");
        }
        Ok(A::decode(answer.split_off(PREFIX_BYTES))?)
    }
}

fn framed(request: &impl Message) -> Result<Bytes> {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(request.encoded_len().try_into()?);
    request.encode(&mut frame)?;
    Ok(frame.freeze())
}

/// Refuses a status other than `OK`.
fn check(headers: &http::HeaderMap) -> Result<()> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        Some("0") => Ok(()),
        status => bail!("status {}: {}", status.unwrap_or("-"), text("grpc-message").unwrap_or_default()),
    }
}
