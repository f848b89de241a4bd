//! The same request again, under the same key: the same answer, and nothing changes.

use ipam_api::Code;
use ipam_api::client::Call;
use serde_json::{Value, json};

use super::{read, with_pools};
use crate::support::ask::put;
use crate::support::raw::{Raw, ask};
use crate::support::{Cluster, LONG};

/// Parts of a response that a repetition has, too. `status` is computed anew, and a pool shows its subnet's
/// network while the subnet exists.
fn same(answer: &Raw) -> (u16, Value, Option<String>, Option<String>) {
    let mut body: Value = if answer.body.is_empty() { Value::Null } else { answer.json() };
    if let Some(body) = body.as_object_mut() {
        ["status", "network", "request_id", "revision"].iter().for_each(|field| drop(body.remove(*field)));
    }
    let header = |name: &str| answer.headers.get(name).cloned();
    (answer.status, body, header("etag"), header("location"))
}

async fn point(cluster: &Cluster) -> (u64, Value) {
    let shown = cluster.settled().await;
    (shown.revision, serde_json::to_value(shown.addresses).unwrap())
}

/// The first pair of the conventions, for every write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_is_answered_the_same_by_every_member_and_the_next_leader() {
    let mut cluster = with_pools(3).await;
    let host = json!({"endpoint": {"kind": "host", "name": "h1"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["web"], "ipv6_pools": ["web6"]}]});
    let pool = json!({"name": "p", "subnet": "s", "ranges": ["10.9.0.10-10.9.0.20"]});
    let requests = [
        ("POST", "/v1/subnets", json!({"name": "s", "cidr": "10.9.0.0/24"})),
        ("POST", "/v1/pools", pool),
        ("POST", "/v1/pools", json!({"name": "p", "subnet": "s"})),
        ("PUT", "/v1/pools/p", json!({"name": "p", "subnet": "s", "ranges": ["10.9.0.10-10.9.0.30"]})),
        ("PATCH", "/v1/pools/p", json!({"description": "patched"})),
        ("POST", "/v1/allocations", host),
        ("DELETE", "/v1/endpoints/host/default/default/h1", Value::Null),
        ("DELETE", "/v1/pools/p", Value::Null),
        ("DELETE", "/v1/subnets/s", Value::Null),
    ];
    let key = |at: usize| format!("key-{at}");
    let mut answers = Vec::new();
    for (at, (method, path, body)) in requests.iter().enumerate() {
        let to = cluster.members[at % 3].client;
        let answer = ask(to, method, path, &[("idempotency-key", &key(at))], body).await;
        assert!(!answer.headers.contains_key("idempotency-replayed"), "{answer:?}");
        answers.push(answer);
    }
    assert_eq!(
        answers.iter().map(|answer| answer.status).collect::<Vec<_>>(),
        [201, 201, 409, 200, 200, 201, 200, 204, 204]
    );
    let before = point(&cluster).await;
    for round in 0..2 {
        for (at, (method, path, body)) in requests.iter().enumerate() {
            let members: Vec<_> = cluster.up_members().map(|member| member.client).collect();
            let to = members[(at + 1) % members.len()];
            let again = ask(to, method, path, &[("idempotency-key", &key(at))], body).await;
            assert_eq!(same(&again), same(&answers[at]), "{method} {path}");
            assert_eq!(again.headers["idempotency-replayed"], "true", "{method} {path}: {again:?}");
        }
        assert_eq!(point(&cluster).await, before);
        if round == 0 {
            let leader = cluster.leader().await;
            cluster.members[leader].kill();
            cluster.leader().await;
        }
    }

    let to = cluster.up_members().next().unwrap().client;
    let other =
        ask(to, "POST", "/v1/pools", &[("idempotency-key", "key-1")], &json!({"name": "q", "subnet": "web"}))
            .await;
    assert_eq!((other.status, other.problem().code), (422, Code::IdempotencyKeyReused));
    let other = ask(to, "POST", "/v1/networks", &[("idempotency-key", "key-1")], &json!({"name": "p"})).await;
    assert_eq!(other.status, 422);
}

/// A merged change that lost to another write is merged again under the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_patches_with_keys_all_come_about_once() {
    let cluster = with_pools(3).await;
    let mut racers = Vec::new();
    for at in 0..12 {
        let client = cluster.at(at % 3);
        let call = Call::patch("/v1/pools/web")
            .json(&json!({"labels": {format!("k{at}"): "v"}}))
            .unwrap()
            .header("idempotency-key", &format!("race-{at}"))
            .unwrap()
            .repeatable()
            .within(LONG);
        racers.push(tokio::spawn(async move { client.send(call).await.unwrap() }));
    }
    for racer in racers {
        racer.await.unwrap();
    }
    let pool: Value = read(cluster.members[0].client, "/v1/pools/web").await.json();
    assert_eq!(pool["labels"].as_object().unwrap().len(), 12);
    put(&cluster.ask(), "pools", json!({"name": "web", "subnet": "web"})).await;
    let again = ask(
        cluster.members[1].client,
        "PATCH",
        "/v1/pools/web",
        &[("idempotency-key", "race-3")],
        &json!({"labels": {"k3": "v"}}),
    )
    .await;
    assert_eq!((again.status, again.headers["idempotency-replayed"].as_str()), (200, "true"));
    let pool: Value = read(cluster.members[0].client, "/v1/pools/web").await.json();
    assert_eq!(pool["labels"], json!({}), "a repetition changes nothing");
}

/// A repetition with another precondition is another request. The kept answer would assert that the condition
/// held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_for_one_condition() {
    let cluster = with_pools(1).await;
    let to = cluster.members[0].client;
    let body = json!({"name": "web", "description": "new"});
    let put = async |key: &str, headers: &[(&str, &str)]| {
        let headers = [&[("idempotency-key", key)], headers].concat();
        ask(to, "PUT", "/v1/networks/web", &headers, &body).await
    };
    let none: &[(&str, &str)] = &[];
    let first = put("key", &[("if-none-match", "*")]).await;
    assert_eq!(first.status, 201, "{first:?}");
    let etag = first.headers["etag"].clone();
    for headers in [none, &[("if-match", &etag)], &[("if-match", "\"1\"")]] {
        let other = put("key", headers).await;
        assert_eq!((other.status, other.problem().code), (422, Code::IdempotencyKeyReused), "{headers:?}");
    }
    let again = put("key", &[("if-none-match", "*")]).await;
    assert_eq!((again.status, &again.headers["idempotency-replayed"][..]), (201, "true"));
    assert_eq!(put("unconditional", none).await.status, 200);
    let other = put("unconditional", &[("if-match", &etag)]).await;
    assert_eq!(other.status, 422);
}
