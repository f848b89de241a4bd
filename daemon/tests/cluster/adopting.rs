//! Adoption of existing addresses, over HTTP and with `ipamctl`; and metadata of allocations.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::put;
use crate::support::plugin::{Plugin, network};
use crate::support::raw::ask;

/// A pool for others, one that is disabled, and a reservation.
async fn scene() -> Cluster {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "lan", "cidr": "10.20.12.0/24", "gateway": "10.20.12.199"})).await;
    let ranges = ["10.20.12.2-10.20.12.99"];
    put(&client, "pools", json!({"name": "db", "subnet": "lan", "ranges": ranges, "namespaces": ["db"]}))
        .await;
    let ranges = ["10.20.12.100-10.20.12.199"];
    put(&client, "pools", json!({"name": "old", "subnet": "lan", "ranges": ranges, "disabled": true})).await;
    put(&client, "reservations", json!({"name": "kept", "addresses": ["10.20.12.9"]})).await;
    cluster
}

fn allocate_request(name: &str, address: &str) -> Value {
    json!({
        "endpoint": {"kind": "host", "name": name}, "adopt": true,
        "interfaces": [{"name": "eth0", "addresses": [address]}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_existing_address_is_adopted_exactly_once() {
    let cluster = scene().await;
    let to = cluster.members[0].client;
    for (name, address) in [("printer", "10.20.12.9"), ("db-07", "10.20.12.50"), ("old", "10.20.12.100")] {
        let mut body = allocate_request(name, address);
        body["hostname"] = json!(format!("{name}.example.com"));
        body["description"] = json!("by the door");
        body["interfaces"][0]["mac"] = json!("3C-EC-ef:12:00:07");
        let adopted = ask(to, "POST", "/v1/allocations", &[], &body).await;
        assert_eq!(adopted.status, 201, "{adopted:?}");
        let again = ask(to, "POST", "/v1/allocations", &[], &body).await;
        assert_eq!((again.status, &again.json::<Value>()["repeated"]), (200, &json!(true)));
        let shown: Value =
            ask(to, "GET", &format!("/v1/addresses/{address}"), &[], &Value::Null).await.json();
        let allocation = &shown["allocation"];
        assert_eq!(allocation["hostname"], format!("{name}.example.com"));
        assert_eq!(allocation["description"], "by the door");
        assert_eq!(allocation["mac"], "3c:ec:ef:12:00:07");
        let history = format!("/v1/addresses/{address}/history");
        let history: Value = ask(to, "GET", &history, &[], &Value::Null).await.json();
        assert_eq!(history["events"][0]["reason"], "adopted", "{history}");
    }
    let by_name: Value =
        ask(to, "GET", "/v1/allocations?hostname=db-07.example.com", &[], &Value::Null).await.json();
    assert_eq!(by_name["items"][0]["address"], "10.20.12.50/24", "{by_name}");
    for mac in ["3c:ec:ef:12:00:07", "3C-EC-EF-12-00-07"] {
        let by_mac: Value =
            ask(to, "GET", &format!("/v1/allocations?mac={mac}"), &[], &Value::Null).await.json();
        assert_eq!(by_mac["items"].as_array().unwrap().len(), 3, "however it is written: {by_mac}");
    }

    let nameless = json!({"adopt": true, "endpoint": {"kind": "host", "name": "x"},
                          "interfaces": [{"name": "eth0", "ipv4_pools": ["db"]}]});
    let mut both = allocate_request("x", "10.20.12.60");
    both["interfaces"][0]["families"] = json!([4, 6]);
    let mut dns = allocate_request("x", "10.20.12.60");
    dns["hostname"] = json!("no_host");
    let mut long = allocate_request("x", "10.20.12.60");
    long["description"] = json!("x".repeat(1025));
    let mut odd = allocate_request("x", "10.20.12.60");
    odd["adopt"] = json!("yes");
    for (body, status, code, says) in [
        (allocate_request("x", "10.20.12.9"), 409, "address-taken", "held by host/printer"),
        (allocate_request("x", "10.20.12.199"), 409, "address-reserved", "the gateway"),
        (allocate_request("x", "10.20.12.220"), 422, "address-outside-pools", "in no pool"),
        (nameless, 422, "conflicting-fields", "has no address to adopt"),
        (both, 422, "conflicting-fields", "has no IPv6 address"),
        (dns, 422, "invalid-field", "is not a host name"),
        (long, 422, "limit-exceeded", "description is longer"),
        (odd, 422, "invalid-field", "expected a boolean"),
    ] {
        let refused = ask(to, "POST", "/v1/allocations", &[], &body).await;
        let problem = refused.problem();
        assert_eq!((refused.status, problem.code.to_string().as_str()), (status, code), "{problem:?}");
        assert!(problem.detail.contains(says), "{problem:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_printer_is_recorded_on_the_command_line() {
    let cluster = scene().await;
    let servers = cluster.urls();
    let line = "allocate --endpoint host/printer-12 --address 10.20.12.9 --adopt --mac 3c:ec:ef:12:00:07 \
                --hostname printer-12.example.com --description room-12";
    let adopted = ipamctl(&servers, line).await.ends(0);
    assert!(adopted.stderr.contains("1 address held by host/printer-12"), "{adopted:?}");
    let shown = ipamctl(&servers, "endpoint show host/printer-12").await.ends(0).stdout;
    assert!(shown.contains("10.20.12.9 printer-12.example.com   room-12"), "{shown}");
    assert!(shown.contains("10.20.12.9 3c:ec:ef:12:00:07"), "{shown}");
    let who = ipamctl(&servers, "who-has 10.20.12.9").await.ends(0).stdout;
    for part in ["mac 3c:ec:ef:12:00:07", "called printer-12.example.com", "description  room-12", "adopted"]
    {
        assert!(who.contains(part), "{part}: {who}");
    }
    ipamctl(&servers, "allocate --endpoint host/x --adopt").await.ends(2);
    let taken = ipamctl(&servers, "allocate --endpoint host/x --address 10.20.12.9 --adopt").await.ends(1);
    assert!(taken.stderr.contains("held by host/printer-12"), "{taken:?}");
}

/// The pod runs since before the migration: no ADD of this plugin has made an attachment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_del_of_an_adopted_pod_frees_its_address() {
    let cluster = scene().await;
    let to = cluster.members[0].client;
    let mut body = allocate_request("web-0", "10.20.12.50");
    body["endpoint"] = json!({"kind": "pod", "namespace": "shop", "name": "web-0"});
    body["uid"] = json!("u1");
    body["node"] = json!("n1");
    assert_eq!(ask(to, "POST", "/v1/allocations", &[], &body).await.status, 201);
    let held = async || {
        let list: Value = ask(to, "GET", "/v1/allocations", &[], &Value::Null).await.json();
        list["items"].as_array().unwrap().len()
    };
    for (node, uid, left) in [("n1", "u2", 1), ("n2", "u1", 1), ("n1", "u1", 0), ("n1", "u1", 0)] {
        let arguments = format!("K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_UID={uid}");
        let conf = network(&cluster.urls(), node, &["db"]);
        Plugin::new("DEL", "c1", &conf).arguments(&arguments).run().await.succeeds();
        assert_eq!(held().await, left, "{node} {uid}");
    }
    let history = ask(to, "GET", "/v1/addresses/10.20.12.50/history", &[], &Value::Null).await;
    assert_eq!(history.json::<Value>()["events"][0]["reason"], "DEL");
}
