//! Callers without rights: refused by the head of the request, in bounded memory. They learn nothing about
//! the cluster.

use std::net::SocketAddr;

use ipam_api::Code;
use ipam_api::brand::{HEADER_LEADER, HEADER_REVISION};
use ipam_api::client::{Call, Client};
use ipam_api::limits::BODY_BYTES_MAX;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::raw::{Raw, ask, parse, request, send};
use crate::support::{Cluster, LONG};

/// Every caller must present a token.
const GUARDED: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\n[access]\nrequire_tokens = true";
/// Connections of one caller at once: fewer than its share of requests in progress.
const CONNECTIONS: usize = 240;
/// A token that is well formed and unknown.
const UNKNOWN: (&str, &str) = ("authorization", "Bearer ipamd_00000000000000000000000000000000");

async fn guarded(count: usize) -> Cluster {
    Cluster::of_with(count, GUARDED).all_up().await
}

/// The head of a request that announces the largest body.
fn head(token: Option<(&str, &str)>) -> Vec<u8> {
    let length = BODY_BYTES_MAX.to_string();
    let mut headers = vec![("content-type", "application/json"), ("content-length", length.as_str())];
    headers.extend(token);
    request("POST", "/v1/networks", &headers, b"")
}

async fn answer(stream: &mut TcpStream) -> Raw {
    let mut bytes = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("an answer");
    // A reset would take the answer with it.
    read.expect("an orderly end");
    parse(&bytes).expect("a whole answer")
}

/// The most memory that a process has had, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn hardening_3_a_stranger_is_refused_before_any_of_the_body_is_sent() {
    let cluster = guarded(1).await;
    let member = &cluster.members[0];
    for token in [None, Some(UNKNOWN), Some(("authorization", "Basic cm9vdDpyb290"))] {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(member.client).await.unwrap();
            stream.write_all(&head(token)).await.unwrap();
            streams.push(stream);
        }
        // Nothing of any body is ever sent.
        for mut stream in streams {
            let refused = answer(&mut stream).await;
            assert_eq!((refused.status, refused.problem().code), (401, Code::Unauthenticated));
            assert_eq!(refused.headers["connection"], "close");
        }
    }
}

#[tokio::test]
async fn hardening_3_bodies_of_strangers_take_no_memory_and_all_of_them_see_why() {
    let cluster = guarded(1).await;
    let member = &cluster.members[0];
    let before = peak_kib(member.pid());
    let body = vec![b' '; BODY_BYTES_MAX];
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(member.client).await.unwrap();
        stream.write_all(&head(None)).await.unwrap();
        stream.write_all(&body[1..]).await.unwrap();
        streams.push(stream);
    }
    // All bodies but for their last bytes have been taken or discarded by now.
    for mut stream in streams {
        stream.write_all(&body[..1]).await.unwrap();
        let refused = answer(&mut stream).await;
        assert_eq!(refused.status, 401, "{refused:?}");
    }
    let grown = peak_kib(member.pid()) - before;
    println!("{CONNECTIONS} bodies of {BODY_BYTES_MAX} bytes: {grown} KiB");
    assert!(grown < (CONNECTIONS * BODY_BYTES_MAX / 1024 / 4) as u64, "{grown} KiB");
}

#[tokio::test]
async fn hardening_3_a_role_that_may_not_write_is_refused_before_the_body() {
    let cluster = guarded(1).await;
    let member = &cluster.members[0];
    let root = Client::over_socket(&member.socket()).unwrap();
    for (allocate_request, status) in [
        (json!({"name": "eve", "role": "viewer"}), 403),
        (json!({"name": "n1", "role": "node", "node": {"name": "n1"}}), 403),
        (json!({"name": "j", "purpose": "join", "role": "node", "ttl_ms": 60_000}), 403),
    ] {
        let call = Call::post("/v1/tokens").json(&allocate_request).unwrap().within(LONG);
        let token: Value = root.call(call).await.unwrap();
        let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
        let mut stream = TcpStream::connect(member.client).await.unwrap();
        stream.write_all(&head(Some(("authorization", &bearer)))).await.unwrap();
        let refused = answer(&mut stream).await;
        assert_eq!((refused.status, refused.problem().code), (status, Code::Forbidden), "{allocate_request}");
        // A caller that is known may know the cluster.
        assert!(refused.headers.contains_key(HEADER_LEADER) && refused.problem().revision.is_some());
    }
}

/// Every method of every path in the member's own description, with a value for each parameter.
async fn routes(to: SocketAddr) -> Vec<(String, String)> {
    let document: Value = ask(to, "GET", "/openapi.json", &[], &Value::Null).await.json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let segments = path.split('/').map(|segment| match segment {
            "{ip}" => "10.0.0.1",
            "{kind}" => "host",
            _ if segment.starts_with('{') => "1",
            _ => segment,
        });
        let path = segments.collect::<Vec<_>>().join("/");
        for method in methods.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            routes.push((method.to_uppercase(), path.clone()));
            if method == "get" {
                routes.push(("HEAD".to_owned(), path.clone()));
            }
        }
        routes.push(("OPTIONS".to_owned(), path));
    }
    assert!(routes.len() > 100, "{routes:?}");
    routes.push(("GET".to_owned(), "/nothing".to_owned()));
    routes.push(("BREW".to_owned(), "/v1/pools".to_owned()));
    routes
}

const PUBLIC: [&str; 6] = ["/livez", "/readyz", "/version", "/openapi.json", "/docs", "/docs/problems"];

#[tokio::test]
async fn hardening_9_a_stranger_learns_neither_revision_nor_leader_from_any_route() {
    let mut cluster = guarded(3).await;
    let root = Client::over_socket(&cluster.members[0].socket()).unwrap();
    let shown: Value = root.call(Call::get("/v1/cluster").within(LONG)).await.unwrap();
    let leader = cluster.members.iter().position(|member| shown["leader"] == *member.name).unwrap();
    let secrets: Vec<String> =
        cluster.members.iter().flat_map(|member| [member.url(), member.peer.to_string()]).collect();
    let at = (leader + 1) % 3;
    let routes = routes(cluster.members[at].client).await;
    let silent = |what: &str, answer: &Raw| {
        for header in [HEADER_LEADER, HEADER_REVISION, "etag", "location", "ipam-stale-ms"] {
            let header = header.to_ascii_lowercase();
            assert!(!answer.headers.contains_key(&header), "{what}: {answer:?}");
        }
        if let Ok(Value::Object(body)) = serde_json::from_str(&answer.body) {
            assert!(!body.contains_key("revision") && !body.contains_key("leader"), "{what}: {answer:?}");
        }
        assert!(!secrets.iter().any(|secret| answer.body.contains(secret)), "{what}: {answer:?}");
    };
    let refused = async |expected: &[u16]| {
        for (method, path) in &routes {
            for headers in [&[][..], &[UNKNOWN], &[("authorization", "Bearer nonsense")]] {
                let what = format!("{method} {path} {headers:?}");
                let answer =
                    send(cluster.members[at].client, &request(method, path, headers, b"{}")).await.unwrap();
                silent(&what, &answer);
                let public = PUBLIC.contains(&path.as_str()) || path == "/nothing";
                match method.as_str() {
                    "OPTIONS" | "BREW" => assert_eq!(answer.status, 405, "{what}"),
                    _ if public => assert_ne!(answer.status, 401, "{what}"),
                    _ => assert!(expected.contains(&answer.status), "{what}: {answer:?}"),
                }
            }
        }
    };
    refused(&[401]).await;
    // An authenticated caller learns the leader, from refusals too.
    let root = Client::over_socket(&cluster.members[at].socket()).unwrap();
    let answer = root.send(Call::get("/readyz").within(LONG)).await.unwrap();
    assert!(answer.header(HEADER_LEADER).is_some(), "{answer:?}");
    // A member without a majority can't look up a token that it doesn't know.
    for other in (0..3).filter(|other| *other != at) {
        cluster.members[other].kill();
    }
    crate::support::until("the last member is not ready", async || {
        let answer = send(cluster.members[at].client, &request("GET", "/readyz", &[], b"")).await.unwrap();
        silent("readyz", &answer);
        if answer.status == 503 { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    for headers in [&[][..], &[UNKNOWN, ("budget-ms", "300")]] {
        let answer =
            send(cluster.members[at].client, &request("GET", "/v1/pools", headers, b"")).await.unwrap();
        silent("without a majority", &answer);
        assert_eq!(answer.status, if headers.is_empty() { 401 } else { 503 }, "{answer:?}");
    }
}

/// Requests that a browser sends for a page of another site, for the user, and for our pages.
#[tokio::test]
async fn hardening_4_a_page_of_another_site_writes_nothing_through_the_open_loopback() {
    let cluster = Cluster::up(1).await;
    let member = &cluster.members[0];
    let own = format!("http://{}", member.client);
    let host = member.client.to_string();
    let try_it = async |method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        for (name, value) in headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            bytes.push_str("content-type: application/json\r\n");
        }
        bytes.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        send(member.client, &[bytes.as_bytes(), body].concat()).await.unwrap()
    };
    let foreign: [&[(&str, &str)]; 7] = [
        &[("origin", "http://evil.example")],
        &[("origin", "null")],
        &[("origin", "http://localhost:1")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")],
    ];
    let routes = routes(member.client).await;
    let writes =
        routes.iter().filter(|(method, _)| !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "BREW"));
    let mut judged = 0;
    for (method, path) in writes {
        for headers in foreign {
            for body in [&b""[..], b"{}"] {
                let refused = try_it(method, path, headers, body).await;
                let code = refused.problem().code;
                let what = format!("{method} {path} {headers:?}: {refused:?}");
                assert_eq!((refused.status, code), (403, Code::Forbidden), "{what}");
                assert!(refused.problem().detail.contains("another site"), "{what}");
                judged += 1;
            }
        }
    }
    assert!(judged > 300, "{judged}");
    // A backup is a read that keeps others from taking one.
    assert_eq!(try_it("GET", "/v1/cluster/backup", foreign[3], b"").await.status, 403);
    // Reads are answered, without leave for the page to see the answer; and a preflight grants nothing.
    for (method, status) in [("GET", 200), ("OPTIONS", 405)] {
        let asks = [("origin", "http://evil.example"), ("access-control-request-method", "PUT")];
        let answer = try_it(method, "/v1/networks", &asks, b"").await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")), "{answer:?}");
    }
    // The user, our own pages, and programs that send neither header.
    let allowed: [&[(&str, &str)]; 4] = [
        &[],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "same-origin"), ("origin", &own)],
        &[("origin", &own)],
    ];
    for (at, headers) in allowed.iter().enumerate() {
        let body = format!("{{\"name\":\"net-{at}\"}}");
        let made = try_it("POST", "/v1/networks", headers, body.as_bytes()).await;
        assert_eq!(made.status, 201, "{headers:?}: {made:?}");
        assert_eq!(try_it("DELETE", &format!("/v1/networks/net-{at}"), headers, b"").await.status, 204);
    }
}
