//! Grants of transactions: those that steps make, and those that steps end.

use serde_json::json;

use super::scripted::{Scripted, answer, session};
use crate::history::Grant;
use crate::workload::At;
use crate::workload::batch::{Batch, Step};
use crate::workload::requests::{Wanted, endpoint_key};

fn grant(id: u64, address: &str, endpoint: &str) -> Grant {
    Grant {
        id,
        network: "default".to_owned(),
        address: address.to_owned(),
        pool: Some("test".to_owned()),
        endpoint: Some(endpoint.to_owned()),
    }
}

#[tokio::test]
async fn an_answer_names_what_was_made_and_what_ended_with_each_endpoint() {
    let (one, two) = ("machine/default/test/test-1", "machine/default/test/test-2");
    let address = json!({"address": "10.0.0.1/24", "pool": "test", "allocation": 9, "checked": false});
    let interfaces = json!([{"name": "eth0", "addresses": [address]}]);
    let made = json!({
        "endpoint": endpoint_key(one), "interfaces": interfaces, "repeated": false, "revision": 9,
    });
    let results = json!([
        {"status": 200, "body": {"addresses": ["10.0.0.2"], "revision": 9}},
        {"status": 201, "body": made},
        {"status": 200, "body": {"addresses": [], "revision": 9}},
        {"status": 200, "body": {"name": "test"}},
    ]);
    let server = Scripted::new(move |_| Ok(answer(&json!({"results": results, "revision": 9}))));
    let (mut session, lines, _phases) = session(&server);
    let ended = grant(5, "10.0.0.2", two);
    let not_ended = grant(6, "10.0.0.3", two);
    let batch = Batch {
        steps: vec![
            Step::Release(two.to_owned(), ended.clone()),
            Step::Allocate(Wanted::one(one.to_owned(), "test")),
            Step::Release(two.to_owned(), not_ended.clone()),
            Step::Other(json!({"method": "PATCH", "path": "/v1/pools/test", "body": {}})),
        ],
        conditions: vec![json!({"path": "/v1/pools/test", "revision": "7"})],
    };
    let made = session.transact(At::All, &batch, None).await.unwrap();
    assert_eq!(made, [grant(9, "10.0.0.1", one)]);
    let operations = lines.operations();
    assert_eq!(operations[0].value.grants, [ended.clone(), not_ended]);
    assert_eq!(operations[1].value.grants, [grant(9, "10.0.0.1", one), ended]);
    assert_eq!(operations[0].value.detail["allocates"], json!([one]));
    let body: serde_json::Value = serde_json::from_slice(server.calls()[0].body().unwrap()).unwrap();
    assert_eq!(body["if"][0]["revision"], "7");
    assert_eq!(body["steps"][0], json!({"method": "DELETE", "path": "/v1/allocations/5"}));
}

#[tokio::test]
async fn a_bulk_makes_a_grant_for_each_endpoint() {
    let names = ["machine/default/test/test-1", "machine/default/test/test-2"];
    let line = |number: u64, name: &str| {
        let address = format!("10.0.0.{number}/24");
        json!({"name": name, "allocation": number, "address": address, "pool": "test"})
    };
    let body = json!({"allocations": [line(1, "test-1"), line(2, "test-2")], "pools": [], "revision": 9});
    let results = json!([{"status": 201, "body": body}]);
    let server = Scripted::new(move |_| Ok(answer(&json!({"results": results, "revision": 9}))));
    let (mut session, lines, _phases) = session(&server);
    let all = names.map(|name| Wanted::one(name.to_owned(), "test")).to_vec();
    let batch = Batch { steps: vec![Step::AllocateMany(all)], conditions: Vec::new() };
    let made = session.transact(At::All, &batch, None).await.unwrap();
    assert_eq!(made, [grant(1, "10.0.0.1", names[0]), grant(2, "10.0.0.2", names[1])]);
    assert_eq!(lines.operations()[0].value.detail["allocates"], json!(names));
    let body: serde_json::Value = serde_json::from_slice(server.calls()[0].body().unwrap()).unwrap();
    assert_eq!(body["steps"][0]["path"], "/v1/allocations/bulk");
    assert_eq!(body["steps"][0]["body"]["names"], json!(["test-1", "test-2"]));
}
