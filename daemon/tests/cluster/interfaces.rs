//! Several interfaces of one pod, each with an ADD of its own, as Multus does it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::put;
use crate::support::plugin::{Plugin, network};
use crate::support::raw::ask;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_interfaces_of_one_pod_in_one_pool_have_two_addresses() {
    let cluster = Cluster::up(3).await;
    put(&cluster.ask(), "subnets", json!({"name": "lan", "cidr": "10.1.0.0/29"})).await;
    put(&cluster.ask(), "pools", json!({"name": "lan", "subnet": "lan", "cooling_ms": 0})).await;
    let conf = network(&cluster.urls(), "n1", &["lan"]);
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=w0;K8S_POD_UID=u0";
    let run = async |verb: &'static str, interface: &'static str| {
        Plugin::new(verb, "c1", &conf).arguments(pod).interface(interface).run().await
    };
    let mut held = BTreeSet::new();
    for interface in ["eth0", "net1"] {
        assert!(held.insert(run("ADD", interface).await.addresses()[0].to_string()));
    }
    // Repeated, each has its own again, and nothing of the other's.
    for interface in ["net1", "eth0"] {
        assert!(!held.insert(run("ADD", interface).await.addresses()[0].to_string()));
    }
    let to = cluster.members[0].client;
    let endpoint = "/v1/endpoints/pod/default/web/w0";
    let shown: Value = ask(to, "GET", endpoint, &[], &Value::Null).await.json();
    let interfaces = shown["status"]["interfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 2, "{shown}");
    // One goes, the other stays.
    run("DEL", "eth0").await;
    let shown: Value = ask(to, "GET", endpoint, &[], &Value::Null).await.json();
    let left = shown["status"]["interfaces"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["name"]), (1, &json!("net1")), "{shown}");
    run("DEL", "net1").await;
    assert_eq!(ask(to, "GET", endpoint, &[], &Value::Null).await.status, 404);
}
