//! Bytes that are no request: garbage, halves, and far too much.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::ask::{allocate, allocate_request, make_pools};
use crate::support::raw::{ask, request, send};
use crate::support::{Cluster, LONG};

const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_no_json_object_are_refused() {
    let cluster = Cluster::up(1).await;
    // A write is accepted once the entry that begins the leadership is applied: from here on nothing changes
    // by itself.
    make_pools(&cluster.ask()).await;
    let before = cluster.settled().await;
    let whole = json!({"name": "lab", "description": "a b"}).to_string();
    let mut bodies: Vec<(Vec<u8>, &str)> = Vec::new();
    for at in 0..whole.len() {
        bodies.push((whole.as_bytes()[..at].to_vec(), "malformed-body"));
    }
    for text in
        ["null", "7", "\"x\"", "[]", "[{}]", "{}{}", "{} x", "\u{feff}{}", "{'name':'x'}", "{\"name\":NaN}"]
    {
        bodies.push((text.into(), "malformed-body"));
    }
    bodies.push((vec![0xff, 0xfe, 0x00], "malformed-body"));
    bodies.push((b"{\"name\":\"\xff\"}".to_vec(), "malformed-body"));
    bodies.push((b"{\"name\":\"\\ud800\"}".to_vec(), "malformed-body"));
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        bodies.push((deep.clone().into(), "malformed-body"));
        bodies.push((format!("{{\"name\":\"lab\",\"labels\":{deep}}}").into(), "malformed-body"));
    }
    bodies.push((b"{\"name\":\"lab\",\"labels\":{\"a\":[1]}}".to_vec(), "invalid-field"));
    bodies.push((b"{\"name\":\"lab\",\"labels\":{\"a\":1e999}}".to_vec(), "malformed-body"));
    for (body, code) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let bytes = request("POST", "/v1/networks", &[], &body);
        let problem = send(cluster.members[0].client, &bytes).await.expect(&shown).problem();
        assert_eq!(problem.code.to_string(), code, "{shown}: {problem:?}");
    }
    let after = cluster.settled().await;
    assert_eq!(after.revision, before.revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_too_large_are_refused_and_cost_little() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let before = cluster.settled().await;
    let to = cluster.members[0].client;
    // The largest one that is read, to the byte, and one more.
    let bare = json!({"name": "lab"}).to_string();
    let padded = |bytes: usize| bare.replacen('{', &format!("{{{}", " ".repeat(bytes - bare.len())), 1);
    let over = send(to, &request("POST", "/v1/networks", &[], padded(MIB + 1).as_bytes())).await.unwrap();
    assert_eq!((over.status, over.problem().code.to_string().as_str()), (413, "too-large"));
    let most = send(to, &request("POST", "/v1/networks", &[], padded(MIB).as_bytes())).await.unwrap();
    assert_eq!(most.status, 201, "{most:?}");
    let gone = ask(to, "DELETE", "/v1/networks/lab", &[], &Value::Null).await;
    assert_eq!(gone.status, 204);

    let memory = resident_mib(&cluster);
    for chunked in [false, true] {
        let got = pour(to, 100 * MIB, chunked).await;
        assert!(got.is_empty() || got.contains(" 413 "), "{got}");
    }
    // Ten at once, none of which is buffered as a whole.
    let pours: Vec<_> = (0..10).map(|_| tokio::spawn(pour(to, 100 * MIB, true))).collect();
    for poured in pours {
        let got = poured.await.unwrap();
        assert!(got.is_empty() || got.contains(" 413 "), "{got}");
    }
    let grown = resident_mib(&cluster).saturating_sub(memory);
    assert!(grown < 100, "the member grew by {grown} MiB");
    allocate(&cluster.at(0), &allocate_request("undisturbed", &["web"])).await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, before.addresses.allocated + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_request_disturb_no_client() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let before = cluster.settled().await;
    let to = cluster.members[0].client;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(MIB));
    let headers = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    let garbage: [&[u8]; 9] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/networks HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/networks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}",
        long.as_bytes(),
        headers.as_bytes(),
    ];
    for bytes in garbage {
        let answer = send(to, bytes).await;
        assert!(answer.as_ref().is_none_or(|answer| (400..500).contains(&answer.status)), "{answer:?}");
    }
    // A body that ends before its time carries nothing out, though what came reads as a whole.
    for _ in 0..3 {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let head = "POST /v1/networks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n";
        stream.write_all(format!("{head}{{\"name\":\"half\"}}").as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains(" 201 "));
    }
    // Silent connections don't keep other clients waiting.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(to).await.unwrap());
    }
    allocate(&cluster.at(0), &allocate_request("undisturbed", &["web"])).await.unwrap();
    let after = cluster.settled().await;
    assert_eq!(after.addresses.allocated, before.addresses.allocated + 1);
    let half = ask(to, "GET", "/v1/networks/half", &[], &Value::Null).await;
    assert_eq!(half.status, 404);
}

/// Sends a body of this many bytes, or as much as is accepted; returns the response.
async fn pour(to: SocketAddr, bytes: usize, chunked: bool) -> String {
    let length =
        if chunked { "transfer-encoding: chunked".to_owned() } else { format!("content-length: {bytes}") };
    let head = format!(
        "POST /v1/networks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    );
    let pouring = async {
        let stream = TcpStream::connect(to).await.unwrap();
        let (mut from, mut into) = stream.into_split();
        let answer = tokio::spawn(async move {
            let mut answer = Vec::new();
            let _ = from.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        });
        let piece = [b' '; 1 << 16];
        let piece = if chunked { [b"10000\r\n", &piece[..], b"\r\n"].concat() } else { piece.to_vec() };
        let mut left = into.write_all(head.as_bytes()).await.is_ok();
        for _ in 0..bytes >> 16 {
            left = left && into.write_all(&piece).await.is_ok();
        }
        drop(into);
        answer.await.unwrap()
    };
    timeout(LONG, pouring).await.expect("it neither answers nor hangs up")
}

/// Resident memory of the first member.
fn resident_mib(cluster: &Cluster) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.members[0].pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<usize>().unwrap() / 1024
}
