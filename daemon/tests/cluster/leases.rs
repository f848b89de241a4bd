//! Leases of real processes: allocated, renewed, expired; none expires during an outage of the cluster.

use ipam_api::client::{Call, Client};
use ipam_api::request::{Allocated, Renewed};
use ipam_api::time::Timestamp;
use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::ask::{get, known, put};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG, until};

async fn pool(client: &Client, cooling_ms: u64) {
    put(client, "subnets", json!({"name": "lab", "cidr": "10.30.0.0/24"})).await;
    put(client, "pools", json!({"name": "lab", "subnet": "lab", "cooling_ms": cooling_ms})).await;
}

fn allocate_request(name: &str, ttl_ms: u64) -> Value {
    json!({
        "endpoint": {"kind": "host", "name": name}, "ttl_ms": ttl_ms,
        "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}],
    })
}

async fn lease(client: &Client, name: &str, ttl_ms: u64) -> Allocated {
    let call = Call::post("/v1/allocations").json(&allocate_request(name, ttl_ms)).unwrap();
    client.call(call.repeatable().within(LONG)).await.unwrap()
}

async fn state_of(client: &Client) -> String {
    known(client, "10.30.0.1".parse().unwrap()).await.state
}

fn is_past(time: Timestamp) -> Result<(), String> {
    if Timestamp::now() > time { Ok(()) } else { Err(format!("{time:?} is to come")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_given_renewed_and_ends_by_itself() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    pool(&client, 600_000).await;
    let given = lease(&client, "tmp-3", 3_600_000).await;
    let first = given.interfaces[0].addresses[0].lease.clone().unwrap();
    let again = lease(&client, "tmp-3", 3_600_000).await;
    assert!(again.repeated, "{again:?}");
    let second = again.interfaces[0].addresses[0].lease.clone().unwrap();
    assert!(second.ends_at >= first.ends_at && second.ttl_ms == 3_600_000, "{first:?} {second:?}");
    // By name, at any member; from here on it is a short one, but long enough for renewals of a busy machine.
    let path = "/v1/endpoints/host/default/default/tmp-3/renew";
    let call = Call::post(path).json(&json!({"ttl_ms": 10_000})).unwrap();
    let renewed: Renewed = cluster.at(2).call(call.repeatable().within(LONG)).await.unwrap();
    assert!(renewed.leases[0].lease.ends_at < second.ends_at, "{renewed:?}");
    assert_eq!(renewed.leases[0].allocation, given.interfaces[0].addresses[0].allocation);
    // Without a body for the same time again, repeatedly.
    let short = renewed.leases[0].lease.ends_at;
    until("it is renewed when it would have ended", async || {
        let renewed: Renewed = client.call(Call::post(path).repeatable().within(LONG)).await.unwrap();
        assert_eq!(renewed.leases[0].lease.ttl_ms, 10_000);
        is_past(short)
    })
    .await;
    assert_eq!(state_of(&client).await, "allocated");
    until("the lease ends and the address rests", async || match state_of(&client).await.as_str() {
        "cooling" => Ok(()),
        other => Err(other.to_owned()),
    })
    .await;
    let history: Value = get(&client, "/v1/addresses/10.30.0.1/history").await.unwrap();
    let newest = &history["events"][0];
    assert_eq!((&newest["type"], &newest["reason"]), (&json!("address.released"), &json!("lease-ended")));
    let gone = ask(cluster.members[0].client, "POST", path, &[], &Value::Null).await;
    assert_eq!((gone.status, gone.problem().code.to_string()), (404, "not-found".to_owned()));
    let id = given.interfaces[0].addresses[0].allocation;
    let path = format!("/v1/allocations/{id}/renew");
    let gone = ask(cluster.members[0].client, "POST", &path, &[], &json!({})).await;
    assert_eq!((gone.status, gone.problem().code.to_string()), (409, "allocation-changed".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_ends_because_the_cluster_was_down() {
    let mut cluster = Cluster::up(3).await;
    pool(&cluster.ask(), 600_000).await;
    let given = lease(&cluster.ask(), "tmp-3", 10_000).await;
    let ends_at = given.interfaces[0].addresses[0].lease.clone().unwrap().ends_at;
    cluster.kill_all();
    // A leader that used its wall clock would end it at once.
    until("the lease has ended by the wall clock", async || is_past(ends_at)).await;
    cluster.start_all();
    cluster.ready().await;
    // A command of a new leader clears away what has ended.
    put(&cluster.ask(), "networks", json!({"name": "blue"})).await;
    assert_eq!(state_of(&cluster.ask()).await, "allocated");
    // Long enough for the client's repetitions.
    let again = lease(&cluster.ask(), "tmp-3", 5_000).await;
    assert!(again.repeated, "{again:?}");
    until("the lease ends", async || match state_of(&cluster.ask()).await.as_str() {
        "cooling" => Ok(()),
        other => Err(other.to_owned()),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_impossible_lease_is_refused_with_the_reason() {
    let cluster = Cluster::up(1).await;
    pool(&cluster.ask(), 0).await;
    let to = cluster.members[0].client;
    let key = json!({"node": "n1", "config": "net", "container_id": "c1", "interface": "eth0"});
    let started = json!({"boot_id": "b", "at_us": 1});
    for (more, code, says) in [
        (json!({"ttl_ms": 0}), "invalid-field", "at least 1000 ms"),
        (json!({"ttl_ms": 999}), "invalid-field", "at least 1000 ms"),
        (json!({"ttl_ms": 31_622_400_001_u64}), "limit-exceeded", "a year"),
        (json!({"ttl_ms": u64::MAX}), "limit-exceeded", "a year"),
        (json!({"ttl_ms": -1}), "invalid-field", "`-1`, expected a non-negative integer"),
        (json!({"ttl_ms": "1h"}), "invalid-field", "expected a non-negative integer"),
        (json!({"ttl_ms": null, "lifecycle": "leased"}), "conflicting-fields", "requires ttl_ms"),
        (json!({"lifecycle": "held"}), "conflicting-fields", "ttl_ms requires lifecycle leased"),
        (
            json!({"attachment": key, "started": started}),
            "conflicting-fields",
            "ttl_ms requires lifecycle leased",
        ),
        (
            json!({"attachment": key, "started": started, "lifecycle": "leased"}),
            "conflicting-fields",
            "allocations of an attachment are attached",
        ),
    ] {
        let mut body = allocate_request("x", 60_000);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = ask(to, "POST", "/v1/allocations", &[], &body).await;
        let problem = refused.problem();
        assert_eq!(problem.code.to_string(), code, "{body}: {problem:?}");
        assert!(problem.detail.contains(says), "{body}: {problem:?}");
    }
    let held = json!({"endpoint": {"kind": "host", "name": "h"},
                      "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}]});
    ask(to, "POST", "/v1/allocations", &[], &held).await;
    let renew = "/v1/endpoints/host/default/default/h/renew";
    for (body, status, code) in [
        (json!({}), 409, "not-leased"),
        (json!({"ttl_ms": 0}), 422, "invalid-field"),
        (json!({"ttl": 5000}), 400, "unknown-field"),
        (json!([]), 400, "malformed-body"),
    ] {
        let refused = ask(to, "POST", renew, &[], &body).await;
        assert_eq!((refused.status, refused.problem().code.to_string().as_str()), (status, code), "{body}");
    }
    let both = json!({"steps": [
        {"method": "POST", "path": "/v1/allocations", "body": allocate_request("both", 60_000)},
        {"method": "POST", "path": "/v1/endpoints/host/default/default/both/renew", "body": {"ttl_ms": 90_000}},
        {"method": "POST", "path": "/v1/endpoints/host/default/default/both/renew"},
    ]});
    let done: Value = ask(to, "POST", "/v1/transactions", &[], &both).await.json();
    assert_eq!(done["results"][2]["body"]["leases"][0]["lease"]["ttl_ms"], 90_000, "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_taken_and_renewed_on_the_command_line() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    pool(&cluster.ask(), 0).await;
    let taken = ipamctl(&servers, "allocate --endpoint host/tmp-3 --pool lab --ttl 8h").await.ends(0);
    assert!(taken.stderr.contains("1 address leased to host/tmp-3 until 2"), "{taken:?}");
    let again = ipamctl(&servers, "allocate --endpoint host/tmp-3 --pool lab --ttl 8h").await.ends(0);
    assert!(again.stderr.contains("the lease of host/tmp-3 was renewed"), "{again:?}");
    let renewed = ipamctl(&servers, "renew 10.30.0.1 --ttl 30d").await.ends(0);
    assert!(renewed.stdout.contains("(30d)"), "{renewed:?}");
    ipamctl(&servers, "renew --endpoint host/tmp-3").await.ends(0);
    let who = ipamctl(&servers, "who-has 10.30.0.1").await.ends(0).stdout;
    assert!(who.contains("leased until 2") && who.contains("unless renewed (for 30d)"), "{who}");
    let shown = ipamctl(&servers, "endpoint show host/tmp-3").await.ends(0).stdout;
    assert!(shown.contains("lease        10.30.0.1 until 2"), "{shown}");
    let free = ipamctl(&servers, "renew 10.30.0.9").await.ends(1).stderr;
    assert!(free.contains("10.30.0.9 is free in network default, and not leased"), "{free}");
    ipamctl(&servers, "renew --endpoint host/nobody").await.ends(3);
    ipamctl(&servers, "renew").await.ends(2);
    ipamctl(&servers, "allocate --endpoint host/x --pool lab --ttl 0s").await.ends(2);
    let short = ipamctl(&servers, "renew --endpoint host/tmp-3 --ttl 10ms").await.ends(2).stderr;
    assert!(short.contains("at least 1000 ms"), "{short}");
}
