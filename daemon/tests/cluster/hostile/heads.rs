//! Requests that are too large or ambiguous, or whose paths lead elsewhere.

use ipam_api::client::Call;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::others_are_served;
use crate::support::raw::{request, send};
use crate::support::{Cluster, LONG};

/// A smuggled request, whose effect must never appear.
const SMUGGLED: &str = "PUT /v1/networks/smuggled HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                        content-length: 19\r\n\r\n{\"name\":\"smuggled\"}";
/// Bytes of the body in front of it.
const BODY: &str = "{\"name\":\"first\"}";

/// Sends bytes; returns everything until the member closes the connection.
async fn exchange(cluster: &Cluster, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(cluster.members[0].client).await.unwrap();
    // It may be hung up on before everything is sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it neither answers nor hangs up");
    String::from_utf8_lossy(&answer).into_owned()
}

fn statuses(answers: &str) -> Vec<u16> {
    let answers = answers.match_indices("HTTP/1.1 ").map(|(at, _)| &answers[at + 9..at + 12]);
    answers.map(|status| status.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_huge_heads_are_refused() {
    let cluster = Cluster::up(1).await;
    let long = "x".repeat(1 << 20);
    let longer_than_a_path = format!("/v1/networks/{}", "x".repeat(17 << 10));
    let many: String = (0..1000).map(|at| format!("x-{at}: y\r\n")).collect();
    for (head, wanted) in [
        (format!("GET /readyz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"), &[431, 400][..]),
        (format!("GET /readyz HTTP/1.1\r\nhost: localhost\r\n{long}: x\r\n\r\n"), &[431, 400]),
        (format!("GET /readyz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"), &[431]),
        (format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"), &[414, 431, 400]),
        (
            format!("GET {longer_than_a_path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
            &[413],
        ),
        (format!("{long} /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"), &[431, 400]),
    ] {
        let answer = exchange(&cluster, head.as_bytes()).await;
        let statuses = statuses(&answer);
        // A client that is disconnected while it sends may not receive the reason.
        let fits = statuses.is_empty() || (statuses.len() == 1 && wanted.contains(&statuses[0]));
        assert!(fits, "{}… is answered {answer}", &head[..40]);
        others_are_served(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_json_deeper_than_any_stack_is_refused() {
    let cluster = Cluster::up(1).await;
    for opening in ["[", "{\"a\":", "{\"labels\":["] {
        let body = opening.repeat(1_000_000 / opening.len());
        let bytes = request("PUT", "/v1/networks/deep", &[], body.as_bytes());
        let answer = send(cluster.members[0].client, &bytes).await.expect("an answer");
        assert_eq!(answer.status, 400, "{answer:?}");
        answer.problem();
        others_are_served(&cluster).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_no_second_request_is_smuggled_in_by_a_head_with_two_meanings() {
    let cluster = Cluster::up(1).await;
    let put = "PUT /v1/networks/first HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let length = SMUGGLED.len() + BODY.len();
    let chunk = format!("10\r\n{BODY}\r\n0\r\n\r\n{SMUGGLED}");
    for (what, bytes) in [
        (
            "two lengths",
            format!("{put}content-length: 16\r\ncontent-length: {length}\r\n\r\n{BODY}{SMUGGLED}"),
        ),
        ("a list of lengths", format!("{put}content-length: 16, {length}\r\n\r\n{BODY}{SMUGGLED}")),
        ("a signed length", format!("{put}content-length: +16\r\n\r\n{BODY}{SMUGGLED}")),
        ("a hexadecimal length", format!("{put}content-length: 0x10\r\n\r\n{BODY}{SMUGGLED}")),
        (
            "a length and chunks",
            format!("{put}content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n{chunk}"),
        ),
        (
            "chunks and a length",
            format!("{put}transfer-encoding: chunked\r\ncontent-length: {length}\r\n\r\n{chunk}"),
        ),
        ("no chunks in the end", format!("{put}transfer-encoding: chunked, identity\r\n\r\n{chunk}")),
        ("nearly chunks", format!("{put}transfer-encoding: xchunked\r\n\r\n{chunk}")),
        (
            "chunks twice",
            format!("{put}transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n{chunk}"),
        ),
        ("chunks hidden by a space", format!("{put}transfer-encoding : chunked\r\n\r\n{chunk}")),
        ("a folded line", format!("{put}x: y\r\n transfer-encoding: chunked\r\n\r\n{SMUGGLED}")),
        (
            "chunks of before HTTP/1.1",
            format!("{}\r\n{chunk}", put.replace("1.1", "1.0") + "transfer-encoding: chunked\r\n"),
        ),
        (
            "an endless size of a chunk",
            format!(
                "{put}transfer-encoding: chunked\r\n\r\n10000000000000010\r\n{BODY}\r\n0\r\n\r\n{SMUGGLED}"
            ),
        ),
        ("a NUL", format!("{put}x: a\0b\r\ncontent-length: 16\r\n\r\n{BODY}{SMUGGLED}")),
        (
            "a bare CR",
            format!("{put}x: a\rtransfer-encoding: chunked\r\ncontent-length: 16\r\n\r\n{BODY}{SMUGGLED}"),
        ),
        (
            "no host",
            format!(
                "{}content-length: 16\r\nconnection: close\r\n\r\n{BODY}",
                put.replace("host: localhost\r\n", "")
            ),
        ),
        ("two hosts", format!("{put}host: y\r\ncontent-length: 16\r\nconnection: close\r\n\r\n{BODY}")),
        (
            "another host in its address",
            format!(
                "{}content-length: 16\r\nconnection: close\r\n\r\n{BODY}",
                put.replace("/v1", "http://y/v1")
            ),
        ),
    ] {
        let answers = exchange(&cluster, bytes.as_bytes()).await;
        let statuses = statuses(&answers);
        match (what, statuses.as_slice()) {
            // Read as the standard has it, and then hung up on.
            ("a length and chunks" | "chunks and a length", [200 | 201] | [400]) => {}
            // What follows a refusal is never read.
            (_, [400]) => {}
            _ => panic!("{what} is answered {answers}"),
        }
        let smuggled = cluster.ask().send(Call::get("/v1/networks/smuggled")).await;
        assert_eq!(smuggled.unwrap_err().status, 404, "{what}");
    }
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_bare_line_feeds_end_lines_and_nothing_else() {
    let cluster = Cluster::up(1).await;
    let bytes = "GET /livez HTTP/1.1\nhost: localhost\nconnection: close\n\n";
    let statuses = statuses(&exchange(&cluster, bytes.as_bytes()).await);
    assert!(statuses == [200] || statuses == [400], "{statuses:?}");
    // A line feed in a value ends the line: what follows is a header of its own, not of another request.
    let bytes = "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: a\n\nGET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let answers = exchange(&cluster, bytes.as_bytes()).await;
    assert!(answers.matches("HTTP/1.1 ").count() <= 2, "{answers}");
    others_are_served(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_paths_lead_nowhere_but_where_they_say() {
    let cluster = Cluster::up(1).await;
    let overlong = format!("/v1/networks/{}", "%41".repeat(4000));
    for path in [
        "/v1/../v1/networks",
        "/v1/networks/../networks",
        "/v1/%2e%2e/v1/networks",
        "/v1/networks/%2e%2e",
        "/v1/networks/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/networks/..%5c..%5cetc",
        "//v1/networks",
        "/v1//networks",
        "/v1/networks//default",
        "/v1/networks/default%00",
        "/v1/networks/default%0d%0ax:%20y",
        "/v1/networks/%c0%ae%c0%ae",
        "/v1/networks/%ff",
        "/v1/networks/default;x=y",
        "/v1/networks/default/",
        "/v1/networks%2fdefault",
        "/V1/networks",
        "/readyz/../v1/networks",
        "*",
        &overlong,
    ] {
        let answer = exchange(&cluster, &request("GET", path, &[], b"")).await;
        let statuses = statuses(&answer);
        assert!(matches!(statuses.as_slice(), [400..500]), "{path:.60} is answered {answer}");
        let head = answer.split("\r\n\r\n").next().unwrap();
        assert!(!head.contains("\r\nx: y"), "{answer}");
    }
    others_are_served(&cluster).await;
}
