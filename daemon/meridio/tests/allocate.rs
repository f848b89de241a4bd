//! Allocations: waits for conduits, bounds, and statuses.

use std::time::Duration;

use ipam_api::Code as ProblemCode;
use ipam_api::limits::{GRPC_CONDUIT_WAITS_PER_CALLER_MAX, GRPC_MESSAGE_BYTES_MAX};
use ipam_meridio::Routers;
use ipam_meridio::wire::ipam::v1::ipam_client::IpamClient;
use serde_json::json;
use tonic::Code;

use crate::fixture::{
    LIMIT, Recorder, child, client, client_with, delegated, page, prefix, problem, settings, transport,
    within,
};

/// Servers without a conduit.
fn without_conduit() -> Recorder {
    Recorder::new(|sent| match sent.method.as_str() {
        "GET" => page(&[]),
        _ => problem(ProblemCode::NotFound),
    })
}

fn with_conduit(sent: &crate::fixture::Sent) -> Result<ipam_api::client::Answer, ipam_api::Problem> {
    match sent.method.as_str() {
        "GET" => page(&[prefix("169.255.0.0/20")]),
        _ => delegated("169.255.0.1/32", "169.255.0.0/24"),
    }
}

#[tokio::test]
async fn an_allocation_is_one_request_and_answers_with_the_length_of_the_node() {
    let servers = Recorder::new(with_conduit);
    let prefix = client(&servers).await.allocate(child("bridge")).await.unwrap().into_inner();
    assert_eq!((prefix.address.as_str(), prefix.prefix_length), ("169.255.0.1", 24));
    let sent = servers.sent("POST");
    assert_eq!((sent.len(), servers.sent("GET").len()), (1, 0));
    let node = json!({"owner": "n", "length": 24, "keep_edges": true, "ttl_ms": 2_400_000});
    let expected = json!({
        "pool": "default-ipv4", "realm": "default", "owner": "bridge", "length": 32, "keep_edges": false,
        "through": [{"owner": "c", "keep_edges": false}, node],
    });
    assert_eq!((sent[0].path.as_str(), &sent[0].body), ("/v1/prefixes", &expected));
    client(&servers).await.allocate(child("id-src")).await.unwrap();
    assert_eq!(servers.sent("POST")[1].body["ttl_ms"], 2_400_000, "all but bridges end by themselves");
}

#[tokio::test]
async fn m6_4_a_call_for_an_unknown_conduit_waits_for_it_without_requests() {
    let servers = without_conduit();
    let mut waiting = client(&servers).await;
    let call = tokio::spawn(async move { waiting.allocate(within(child("x"), LIMIT)).await });
    servers.until("GET", 1).await;
    // Conduits of other names lead to a look, and to no request that the log would carry.
    for looks in 2..5 {
        servers.bump();
        servers.until("GET", looks).await;
    }
    assert_eq!(servers.sent("POST").len(), 1);
    servers.reply(with_conduit);
    servers.bump();
    assert_eq!(call.await.unwrap().unwrap().into_inner().address, "169.255.0.1");
    assert_eq!((servers.sent("POST").len(), servers.sent("GET").len()), (2, 5));
    assert!(servers.sent("GET").iter().all(|sent| sent.path.contains("consistency=stale")));
}

#[tokio::test]
async fn m6_4_a_call_whose_conduit_never_appears_ends_with_its_deadline() {
    let servers = without_conduit();
    let request = within(child("x"), Duration::from_millis(50));
    let status = client(&servers).await.allocate(request).await.unwrap_err();
    // The client's own timer may be the first; the text of the server is looked at below.
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    let mut request = tonic::Request::new(child("x"));
    // Only the server knows of this one.
    request.metadata_mut().insert("grpc-timeout", "50m".parse().unwrap());
    let status = client(&servers).await.allocate(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert!(status.message().starts_with("failed allocating (c/n/x), ctx error: "), "{status}");
}

#[tokio::test]
async fn a_conduit_that_waits_for_a_block_refuses_at_once() {
    let servers = Recorder::new(|sent| match sent.method.as_str() {
        "GET" => {
            let mut conduit = prefix("169.255.0.0/20");
            conduit.as_object_mut().unwrap().remove("cidr");
            conduit["waiting"] = json!({
                "type": "Ready", "status": "False", "reason": "PoolExhausted", "severity": "warning",
                "message": "pool default-ipv4 has no free block", "since": "2026-01-01T00:00:00Z",
            });
            page(&[conduit])
        }
        _ => problem(ProblemCode::NotFound),
    });
    let status = client(&servers).await.allocate(child("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("pool default-ipv4 has no free block"), "{status}");
}

#[tokio::test]
async fn calls_of_one_caller_that_wait_are_bounded() {
    let servers = without_conduit();
    let client = client(&servers).await;
    let call = || {
        let mut client = client.clone();
        tokio::spawn(async move { client.allocate(within(child("x"), LIMIT)).await })
    };
    let waiting: Vec<_> = (0..GRPC_CONDUIT_WAITS_PER_CALLER_MAX).map(|_| call()).collect();
    servers.until("GET", GRPC_CONDUIT_WAITS_PER_CALLER_MAX).await;
    let status = call().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    servers.reply(with_conduit);
    servers.bump();
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    client.clone().allocate(child("x")).await.unwrap();
}

#[tokio::test]
async fn a_call_without_a_caller_is_refused() {
    let servers = Recorder::new(with_conduit);
    let routers = Routers::new(settings().into(), servers.clone()).await;
    let mut unknown = IpamClient::new(transport(routers.port, None));
    assert_eq!(unknown.allocate(child("x")).await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(unknown.release(child("x")).await.unwrap_err().code(), Code::Unauthenticated);
    assert!(servers.sent("POST").is_empty());
}

#[tokio::test]
async fn compatible_refusals_are_unknown_with_the_same_text() {
    let servers = Recorder::new(|_| problem(ProblemCode::PoolExhausted));
    let status = client(&servers).await.allocate(child("x")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let mut compatible = settings();
    compatible.compat = true;
    let compatible = client_with(compatible, &servers).await.allocate(child("x")).await.unwrap_err();
    assert_eq!((compatible.code(), compatible.message()), (Code::Unknown, status.message()));
}

#[tokio::test]
async fn m6_12_a_message_above_the_limit_is_refused() {
    let servers = Recorder::new(with_conduit);
    let status =
        client(&servers).await.allocate(child(&"x".repeat(GRPC_MESSAGE_BYTES_MAX))).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert!(servers.sent("POST").is_empty());
    // The largest that is read has a name that is converted.
    client(&servers).await.allocate(child(&"x".repeat(GRPC_MESSAGE_BYTES_MAX - 64))).await.unwrap();
    let owner = servers.sent("POST")[0].body["owner"].as_str().unwrap().to_owned();
    assert!(owner.len() <= 63, "{owner}");
}

#[tokio::test]
async fn a_failure_of_the_servers_is_no_wait() {
    for (code, expected) in [
        (ProblemCode::NoLeader, Code::Unavailable),
        (ProblemCode::InUse, Code::Unavailable),
        (ProblemCode::AlreadyExists, Code::AlreadyExists),
        (ProblemCode::DeadlineExceeded, Code::DeadlineExceeded),
        (ProblemCode::Forbidden, Code::PermissionDenied),
    ] {
        let servers = Recorder::new(move |_| problem(code));
        assert_eq!(client(&servers).await.allocate(child("x")).await.unwrap_err().code(), expected, "{code}");
        assert_eq!(servers.sent("GET").len(), 0);
    }
}
