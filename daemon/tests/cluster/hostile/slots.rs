//! A caller that takes as many slots of a member as it can: those of others stay free.

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::limits::{EVENT_STREAMS_PER_CALLER_MAX, LIST_STATES_MAX, LIST_STATES_PER_CALLER_MAX};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::member::Member;
use crate::support::raw::{Raw, ask, parse, request};
use crate::support::{Cluster, LONG};

const GUARDED: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\n[access]\nrequire_tokens = true";

async fn viewer(root: &Client, name: &str) -> String {
    let allocate_request = json!({"name": name, "role": "viewer"});
    let token: Value =
        root.call(Call::post("/v1/tokens").json(&allocate_request).unwrap().within(LONG)).await.unwrap();
    format!("Bearer {}", token["secret"].as_str().unwrap())
}

/// Begins a stream; returns its head and its connection.
async fn stream(member: &Member, bearer: &str) -> (u16, TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(member.client).await.unwrap();
    let headers = [("accept", "text/event-stream"), ("authorization", bearer)];
    stream.write_all(&request("GET", "/v1/events", &headers, b"")).await.unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        tokio::time::timeout(LONG, stream.read_exact(&mut byte)).await.unwrap().unwrap();
        head.push(byte[0]);
    }
    let status = parse(&head).unwrap().status;
    (status, stream, head)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_7_one_caller_does_not_use_up_the_streams() {
    let cluster = Cluster::of_with(1, GUARDED).all_up().await;
    let member = &cluster.members[0];
    let root = Client::over_socket(&member.socket()).unwrap();
    let (greedy, modest) = (viewer(&root, "greedy").await, viewer(&root, "modest").await);
    let mut open = Vec::new();
    for number in 0..EVENT_STREAMS_PER_CALLER_MAX {
        let (status, stream, _) = stream(member, &greedy).await;
        assert_eq!(status, 200, "{number}");
        open.push(stream);
    }
    let (_, mut refused, mut answer) = stream(member, &greedy).await;
    refused.read_to_end(&mut answer).await.unwrap();
    let refused: Raw = parse(&answer).unwrap();
    assert_eq!((refused.status, refused.problem().code), (429, Code::TooManyRequests));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(stream(member, &modest).await.0, 200, "another caller has a share of its own");
    // A closed one frees a slot.
    drop(open.pop());
    crate::support::until("there is room again", async || match stream(member, &greedy).await {
        (200, ..) => Ok(()),
        (status, ..) => Err(format!("{status}")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardening_7_one_caller_does_not_end_the_lists_of_others() {
    let cluster = Cluster::of_with(1, GUARDED).all_up().await;
    let member = &cluster.members[0];
    let root = Client::over_socket(&member.socket()).unwrap();
    let (greedy, modest) = (viewer(&root, "greedy").await, viewer(&root, "modest").await);
    let page = async |bearer: &str, path: &str| {
        ask(member.client, "GET", path, &[("authorization", bearer)], &Value::Null).await
    };
    let change = async |number: usize| {
        let allocate_request = json!({"name": format!("net-{number}")});
        root.call::<Value>(Call::post("/v1/networks").json(&allocate_request).unwrap().within(LONG))
            .await
            .unwrap();
    };
    change(0).await;
    let next = |answer: &Raw| {
        let cursor = answer.json::<Value>()["next"].as_str().unwrap().to_owned();
        format!("/v1/networks?limit=1&cursor={cursor}")
    };
    let modest_next = next(&page(&modest, "/v1/networks?limit=1").await);
    let mut greedy_next = Vec::new();
    for number in 1..=2 * LIST_STATES_MAX {
        change(number).await;
        greedy_next.push(next(&page(&greedy, "/v1/networks?limit=1").await));
    }
    assert_eq!(page(&modest, &modest_next).await.status, 200);
    let ended = page(&greedy, &greedy_next[0]).await;
    assert_eq!(ended.problem().code, Code::CursorExpired);
    let kept = &greedy_next[greedy_next.len() - LIST_STATES_PER_CALLER_MAX..];
    for path in kept {
        assert_eq!(page(&greedy, path).await.status, 200);
    }
}
