//! HTTP by the byte, for what no decent client would send.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ipam_api::problem::Applied;
use ipam_api::{Code, Problem};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::LONG;

/// Raw HTTP response.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Raw {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn problem(&self) -> Problem {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem: Problem = self.json();
        assert_eq!(problem.status, self.status, "{self:?}");
        assert_eq!(problem.request_id.as_ref(), self.headers.get("request-id"), "{self:?}");
        problem
    }
}

/// Bytes of a request. The body is JSON unless a header has another type.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    let says = |name| headers.iter().any(|(header, _)| *header == name);
    if !body.is_empty() && !says("content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    if !says("content-length") && !says("transfer-encoding") {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// Sends bytes and reads the response until the member closes; nothing if it closes without one.
pub(crate) async fn send(to: SocketAddr, bytes: &[u8]) -> Option<Raw> {
    let exchange = async {
        let mut stream = TcpStream::connect(to).await.unwrap();
        // A member may answer and close the connection before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        answer
    };
    let answer = timeout(LONG, exchange).await.expect("the member neither answered nor hung up");
    parse(&answer)
}

/// The same, where an answer must come.
pub(crate) async fn ask(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Raw {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    send(to, &request(method, path, headers, &body)).await.expect("an answer")
}

/// Response of a member without a leader, with a short budget and a long timeout of the test.
pub(crate) async fn finds_no_leader(to: SocketAddr, method: &str, path: &str, body: &Value) -> Raw {
    let answer = ask(to, method, path, &[("budget-ms", "700")], body).await;
    assert_eq!((answer.status, answer.problem().code), (503, Code::NoLeader));
    assert_eq!(answer.problem().applied, Applied::No);
    assert_eq!(answer.headers["retry-after"], "1");
    answer
}

/// Reads an answer's bytes; nothing if it isn't a whole head.
pub(crate) fn parse(answer: &[u8]) -> Option<Raw> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Some(Raw { status, headers, body: body.to_owned() })
}
