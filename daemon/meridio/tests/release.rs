//! Releases: always well, and nothing is created.

use ipam_api::Code as ProblemCode;
use serde_json::{Value, json};
use tonic::Code;

use crate::fixture::{Recorder, answer, child, client, page, prefix, problem};

fn refresh() -> Value {
    json!({
        "pool": "default-ipv4", "realm": "default", "owner": "n", "keep_edges": false, "ttl_ms": 2_400_000,
        "through": [{"owner": "c", "keep_edges": false}],
    })
}

#[tokio::test]
async fn a_release_frees_the_child_and_refreshes_its_node_in_one_step() {
    let servers = Recorder::new(|sent| match sent.method.as_str() {
        "GET" => page(&[prefix("169.255.0.1/32")]),
        _ => answer(&json!({"results": [], "revision": 9})),
    });
    client(&servers).await.release(child("x")).await.unwrap();
    let sent = servers.sent("POST");
    assert_eq!((sent.len(), sent[0].path.as_str()), (1, "/v1/transactions"));
    let steps = &sent[0].body["steps"];
    assert_eq!(steps[0], json!({"method": "POST", "path": "/v1/prefixes", "body": refresh()}));
    assert_eq!(steps[1], json!({"method": "DELETE", "path": "/v1/prefixes/77"}));
    assert_eq!(steps.as_array().unwrap().len(), 2);
    let found = servers.sent("GET");
    assert!(found[0].path.contains("path=c%2Fn%2Fx") && found[0].path.contains("linearizable"), "{found:?}");
}

#[tokio::test]
async fn a_release_of_an_unknown_child_refreshes_the_node_that_is_there() {
    for answer_to_refresh in [ProblemCode::NotFound, ProblemCode::InUse] {
        let servers = Recorder::new(move |sent| match sent.method.as_str() {
            "GET" => page(&[]),
            _ => problem(answer_to_refresh),
        });
        client(&servers).await.release(child("x")).await.unwrap();
        let sent = servers.sent("POST");
        assert_eq!((sent.len(), sent[0].path.as_str(), &sent[0].body), (1, "/v1/prefixes", &refresh()));
    }
}

#[tokio::test]
async fn a_child_that_ends_in_another_way_first_is_released() {
    for code in [ProblemCode::NotFound, ProblemCode::InUse] {
        let servers = Recorder::new(move |sent| match (sent.method.as_str(), sent.path.as_str()) {
            ("GET", _) => page(&[prefix("169.255.0.1/32")]),
            (_, "/v1/transactions") => problem(code),
            _ => answer(&json!({})),
        });
        client(&servers).await.release(child("x")).await.unwrap();
        assert_eq!(servers.sent("POST").len(), 2);
    }
}

#[tokio::test]
async fn a_release_of_what_can_not_be_there_sends_nothing() {
    let servers = Recorder::new(|_| problem(ProblemCode::Internal));
    let mut client = client(&servers).await;
    let mut nothing = vec![child("")];
    nothing.push(child("x"));
    nothing[1].subnet = None;
    for number in 0..3 {
        let mut child = child("x");
        let subnet = child.subnet.as_mut().unwrap();
        match number {
            0 => subnet.ip_family = 7,
            1 => subnet.conduit = None,
            _ => subnet.conduit.as_mut().unwrap().trench.as_mut().unwrap().name = "other".to_owned(),
        }
        nothing.push(child);
    }
    for child in nothing {
        client.release(child).await.unwrap();
    }
    assert!(servers.sent("GET").is_empty() && servers.sent("POST").is_empty());
}

#[tokio::test]
async fn a_failure_of_the_servers_fails_the_release() {
    let servers = Recorder::new(|_| problem(ProblemCode::NoLeader));
    assert_eq!(client(&servers).await.release(child("x")).await.unwrap_err().code(), Code::Unavailable);
}
