//! Ends of operations: failed and indeterminate ones, and the results of an answer in the history.

use ipam_api::client::{Answer, Call};
use ipam_api::{Code, Problem};
use reqwest::header::HeaderMap;
use serde_json::{Value as Json, json};

use super::scripted::{Scripted, answer, session, unknown};
use crate::history::{Function, Grant, Operation, Type, Value};
use crate::workload::At;
use crate::workload::requests::{Wanted, endpoint_key};

const ENDPOINT: &str = "machine/default/test/test-1";
/// Endpoint of several sessions.
const SHARED: &str = "machine/default/test/test-shared-1";

fn last(operations: &[Operation]) -> &Operation {
    operations.last().unwrap()
}

fn grant(id: u64, address: &str) -> Grant {
    Grant { id, network: "default".to_owned(), address: address.to_owned(), pool: None, endpoint: None }
}

#[tokio::test]
async fn only_an_unknown_outcome_ends_a_process() {
    let refusal = Problem::new(Code::PoolExhausted, "full");
    for (problem, kind) in [(refusal, Type::Fail), (unknown(), Type::Info)] {
        let server = Scripted::new(move |_| Err(problem.clone()));
        let (mut session, lines, _phases) = session(&server);
        for _ in 0..2 {
            let wanted = Wanted::one(ENDPOINT.to_owned(), "test");
            session.allocate(At::All, &wanted, None).await.unwrap_err();
        }
        let operations = lines.operations();
        assert_eq!(operations[1].kind, kind);
        assert_eq!(operations[0].process, operations[1].process);
        assert_eq!(operations[2].process == operations[0].process, kind == Type::Fail);
    }
}

#[tokio::test]
async fn a_damaged_answer_of_a_write_is_indeterminate_and_of_a_read_a_failure() {
    let server = Scripted::new(|_| Ok(Answer::new(200, HeaderMap::new(), b"{".to_vec())));
    let (mut session, lines, _phases) = session(&server);
    session.allocate(At::All, &Wanted::one(ENDPOINT.to_owned(), "test"), None).await.unwrap_err();
    assert_eq!(last(&lines.operations()).kind, Type::Info);
    session.read_address(At::All, "10.0.0.1", false).await.unwrap_err();
    assert_eq!(last(&lines.operations()).kind, Type::Fail);
}

#[tokio::test]
async fn a_deletion_without_a_body_succeeds() {
    let server = Scripted::new(|_| Ok(Answer::new(204, HeaderMap::new(), Vec::new())));
    let (mut session, lines, _phases) = session(&server);
    let call = Call::delete("/v1/pools/test");
    session.call::<Json>(At::Member(0), Function::Delete, Value::default(), call, |_, _| {}).await.unwrap();
    let operations = lines.operations();
    assert_eq!((last(&operations).kind, last(&operations).value.member.as_deref()), (Type::Ok, Some("n1")));
}

#[tokio::test]
async fn a_replayed_answer_is_marked() {
    let released = json!({"addresses": ["10.0.0.1"], "revision": 9});
    let server = Scripted::new(move |_| {
        let headers = [("idempotency-replayed", "true"), ("revision", "9")];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Ok(Answer::new(200, HeaderMap::from_iter(headers), serde_json::to_vec(&released).unwrap()))
    });
    let (mut session, lines, _phases) = session(&server);
    session.release(At::All, ENDPOINT, &grant(7, "10.0.0.1"), Some("k")).await.unwrap();
    let operations = lines.operations();
    let value = &last(&operations).value;
    assert_eq!((value.key.as_deref(), &value.detail["replayed"]), (Some("k"), &json!(true)));
    let sent = server.calls();
    assert!(sent[0].headers().contains(&("idempotency-key".to_owned(), "k".to_owned())));
}

#[tokio::test]
async fn a_release_names_the_grants_whose_addresses_it_freed() {
    let server = Scripted::new(|_| Ok(answer(&json!({"addresses": ["10.0.0.2"], "revision": 9}))));
    let (mut session, lines, _phases) = session(&server);
    let grants = [grant(7, "10.0.0.1"), grant(8, "10.0.0.2")];
    session.release_endpoint(At::All, ENDPOINT, &grants, None).await.unwrap();
    let operations = lines.operations();
    assert_eq!(operations[0].value.grants, grants);
    assert_eq!(operations[1].value.grants, grants[1..]);
    assert_eq!(operations[1].value.detail, json!({"by": "endpoint", "addresses": ["10.0.0.2"]}));
    // The ids of allocations that other sessions made meanwhile are unknown.
    session.release_endpoint(At::All, SHARED, &grants, None).await.unwrap();
    assert_eq!(last(&lines.operations()).value.grants, []);
}

#[tokio::test]
async fn a_claim_that_waits_has_no_grants_and_its_endpoint_as_key() {
    let endpoint = endpoint_key(ENDPOINT);
    assert_eq!(
        endpoint,
        json!({"kind": "machine", "realm": "default", "namespace": "test", "name": "test-1"})
    );
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "PoolExhausted", "message": "0 free",
        "since": "2026-11-20T00:00:00.000Z",
    });
    let waits = json!({
        "endpoint": endpoint, "interfaces": [], "repeated": false, "waiting": condition, "revision": 9,
    });
    let server = Scripted::new(move |_| Ok(answer(&waits)));
    let (mut session, lines, _phases) = session(&server);
    let wanted = Wanted { waits: true, ..Wanted::one(ENDPOINT.to_owned(), "test") };
    assert_eq!(session.allocate(At::All, &wanted, None).await.unwrap(), []);
    let operations = lines.operations();
    assert_eq!((operations[0].f, operations[0].value.key.as_deref()), (Function::Claim, Some(ENDPOINT)));
    assert_eq!(operations[1].value.detail, json!({"waiting": true}));
}

#[test]
fn a_fork_has_a_process_and_keys_of_its_own() {
    let server = Scripted::new(|_| Err(unknown()));
    let (mut session, _lines, _phases) = session(&server);
    let mut fork = session.fork();
    assert_ne!(session.new_key(), fork.new_key());
    assert_ne!(fork.new_key(), fork.new_key());
}
