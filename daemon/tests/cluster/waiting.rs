//! Claims that wait in line, over HTTP and by hand.

use ipam_api::client::Client;
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{allocate, allocate_request, get, put};
use crate::support::raw::{Raw, ask};

/// Pool with a single address, which is held.
async fn full(cluster: &Cluster) -> Client {
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "lab", "cidr": "10.30.0.0/24"})).await;
    let pool = json!({"name": "lab", "subnet": "lab", "ranges": ["10.30.0.5"], "cooling_ms": 0});
    put(&client, "pools", pool).await;
    allocate(&client, &allocate_request("first", &["lab"])).await.unwrap();
    client
}

fn claim(name: &str) -> Value {
    json!({
        "endpoint": {"kind": "claim", "name": name}, "wait": true,
        "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}],
    })
}

async fn post(cluster: &Cluster, at: usize, body: &Value) -> Raw {
    ask(cluster.members[at].client, "POST", "/v1/allocations", &[], body).await
}

async fn delete(cluster: &Cluster, endpoint: &str) -> Raw {
    let path = format!("/v1/endpoints/{endpoint}");
    ask(cluster.members[0].client, "DELETE", &path, &[], &Value::Null).await
}

async fn shown(client: &Client, name: &str) -> Value {
    get(client, &format!("/v1/endpoints/claim/default/default/{name}")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_claims_wait_and_are_served_in_order_by_releases() {
    let mut cluster = Cluster::up(3).await;
    let client = full(&cluster).await;
    for (at, name) in ["one", "two", "three"].into_iter().enumerate() {
        let waits = post(&cluster, at, &claim(name)).await;
        let body: Value = waits.json();
        assert_eq!((waits.status, &body["waiting"]["reason"]), (202, &json!("PoolExhausted")), "{body}");
        assert_eq!((&body["interfaces"], &body["repeated"]), (&json!([]), &json!(false)));
    }
    let again = post(&cluster, 1, &claim("two")).await;
    assert_eq!((again.status, &again.json::<Value>()["repeated"]), (202, &json!(true)));
    let one = shown(&client, "one").await;
    let condition = &one["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Ready"), &json!("False")));
    assert_eq!(condition["reason"], "PoolExhausted");
    assert!(condition["message"].as_str().unwrap().contains("0 free in lab"), "{condition}");
    // The line survives the process.
    cluster.kill_all();
    cluster.start_all();
    cluster.ready().await;
    delete(&cluster, "host/default/default/first").await;
    let one = shown(&client, "one").await;
    assert_eq!(one["status"]["interfaces"][0]["addresses"][0]["address"], "10.30.0.5/24", "{one}");
    assert!(one["status"].get("conditions").is_none(), "{one}");
    let given = post(&cluster, 0, &claim("one")).await;
    assert_eq!((given.status, &given.json::<Value>()["repeated"]), (200, &json!(true)));
    // The second one is withdrawn; the third gets the address.
    let withdrawn = delete(&cluster, "claim/default/default/two").await;
    assert_eq!((withdrawn.status, &withdrawn.json::<Value>()["addresses"]), (200, &json!([])));
    let gone = delete(&cluster, "claim/default/default/two").await;
    assert_eq!(gone.status, 404);
    delete(&cluster, "claim/default/default/one").await;
    let three = shown(&client, "three").await;
    assert_eq!(three["status"]["interfaces"][0]["addresses"][0]["address"], "10.30.0.5/24", "{three}");
    let history: Value = get(&client, "/v1/addresses/10.30.0.5/history").await.unwrap();
    assert_eq!(history["events"][0]["reason"], "waited", "{history}");
    let events: Value = get(&client, "/v1/events?endpoint=claim/two&limit=100").await.unwrap();
    let whats: Vec<&str> =
        events["items"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(whats, ["endpoint.waiting", "endpoint.withdrawn"], "{events}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_or_released_address_serves_a_waiting_claim() {
    let cluster = Cluster::up(1).await;
    let client = full(&cluster).await;
    delete(&cluster, "host/default/default/first").await;
    let mut lease = claim("lease");
    lease["ttl_ms"] = json!(1000);
    assert_eq!(post(&cluster, 0, &lease).await.status, 201);
    post(&cluster, 0, &claim("one")).await;
    // Without further requests: the lease ends by log time, and the next claim gets the address.
    crate::support::until("the claim is served", async || {
        let one = shown(&client, "one").await;
        match one["status"]["interfaces"].as_array().map(Vec::len) {
            Some(1) => Ok(()),
            _ => Err(one.to_string()),
        }
    })
    .await;
    post(&cluster, 0, &claim("two")).await;
    let pool = json!({"name": "lab", "subnet": "lab", "ranges": ["10.30.0.5-10.30.0.6"], "cooling_ms": 0});
    put(&client, "pools", pool.clone()).await;
    assert_eq!(
        shown(&client, "two").await["status"]["interfaces"][0]["addresses"][0]["address"],
        "10.30.0.6/24"
    );
    let mut disabled = pool;
    disabled["disabled"] = json!(true);
    put(&client, "pools", disabled).await;
    let waits = post(&cluster, 0, &claim("three")).await;
    assert_eq!(waits.json::<Value>()["waiting"]["reason"], "PoolNotReady");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_wait_is_refused() {
    let cluster = Cluster::up(1).await;
    let client = full(&cluster).await;
    let key = json!({"node": "n1", "config": "net", "container_id": "c1", "interface": "eth0"});
    let started = json!({"boot_id": "b", "at_us": 1});
    let asked = json!([{"name": "eth0", "ipv4_pools": ["lab"], "addresses": ["10.30.0.5"]}]);
    let nowhere = json!([{"name": "eth0", "ipv4_pools": ["nowhere"]}]);
    for (more, status, code, says) in [
        (
            json!({"attachment": key, "started": started}),
            422,
            "conflicting-fields",
            "an attachment cannot wait",
        ),
        (json!({"interfaces": asked}), 422, "conflicting-fields", "requests a specific address"),
        (json!({"interfaces": asked, "adopt": true}), 422, "conflicting-fields", "cannot wait"),
        (json!({"interfaces": nowhere}), 404, "not-found", "nowhere"),
        (json!({"wait": "yes"}), 422, "invalid-field", "expected a boolean"),
    ] {
        let mut body = claim("x");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = post(&cluster, 0, &body).await;
        let problem = refused.problem();
        assert_eq!((refused.status, problem.code.to_string().as_str()), (status, code), "{problem:?}");
        assert!(problem.detail.contains(says), "{problem:?}");
    }
    post(&cluster, 0, &claim("x")).await;
    let mut other = claim("x");
    other["ttl_ms"] = json!(60_000);
    assert_eq!(post(&cluster, 0, &other).await.problem().code.to_string(), "already-exists");
    let steps = json!({"steps": [
        {"method": "POST", "path": "/v1/allocations", "body": claim("y")},
        {"method": "DELETE", "path": "/v1/endpoints/claim/default/default/x"},
        {"method": "DELETE", "path": "/v1/endpoints/host/default/default/first"},
    ]});
    let done: Value = ask(cluster.members[0].client, "POST", "/v1/transactions", &[], &steps).await.json();
    assert_eq!(done["results"][0]["status"], 202, "{done}");
    assert_eq!(shown(&client, "y").await["status"]["interfaces"][0]["name"], "eth0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_waits() {
    let cluster = Cluster::up(1).await;
    full(&cluster).await;
    let servers = cluster.urls();
    let line = "allocate --endpoint claim/build-7 --pool lab --wait";
    let waits = ipamctl(&servers, line).await.ends(0);
    assert!(waits.stderr.contains("claim/build-7 waits: eth0 IPv4: 0 free in lab"), "{waits:?}");
    let shown = ipamctl(&servers, "endpoint show claim/build-7").await.ends(0).stdout;
    assert!(shown.contains("(PoolExhausted)"), "{shown}");
    let listed = ipamctl(&servers, "endpoint list").await.ends(0).stdout;
    assert!(listed.contains("waits (PoolExhausted)"), "{listed}");
    let events = ipamctl(&servers, "events --limit 1").await.ends(0).stdout;
    assert!(events.contains("endpoint.waiting") && !events.contains('→'), "{events}");
    ipamctl(&servers, "release --endpoint host/first --yes").await.ends(0);
    let given = ipamctl(&servers, line).await.ends(0);
    assert!(given.stdout.contains("10.30.0.5/24"), "{given:?}");
    ipamctl(&servers, "allocate --endpoint claim/build-8 --pool lab --wait").await.ends(0);
    let withdrawn = ipamctl(&servers, "release --endpoint claim/build-8").await.ends(0);
    assert!(withdrawn.stderr.contains("the claim of claim/build-8 withdrawn"), "{withdrawn:?}");
    ipamctl(&servers, "allocate --endpoint claim/x --pool lab --wait --adopt --address 10.30.0.5")
        .await
        .ends(2);
}
