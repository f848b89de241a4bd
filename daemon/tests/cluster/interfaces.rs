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
    // One is deleted, the other stays.
    run("DEL", "eth0").await;
    let shown: Value = ask(to, "GET", endpoint, &[], &Value::Null).await.json();
    let left = shown["status"]["interfaces"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["name"]), (1, &json!("net1")), "{shown}");
    run("DEL", "net1").await;
    assert_eq!(ask(to, "GET", endpoint, &[], &Value::Null).await.status, 404);
}

/// A pod's interfaces `eth0` of `lan` and `net1` of `fabric`, in each of its configurations.
fn listed(servers: &[String], name: &str, interfaces: &Value) -> Value {
    let mut conf = network(servers, "n1", &[]);
    conf["name"] = json!(name);
    conf["args"] = json!({"cni": {"interfaces": interfaces}});
    conf
}

async fn with_lan_and_fabric() -> Cluster {
    let cluster = Cluster::up(3).await;
    for (name, cidr) in [("lan", "10.1.0.0/29"), ("fabric", "10.9.0.0/29")] {
        put(&cluster.ask(), "subnets", json!({"name": name, "cidr": cidr})).await;
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": name, "cooling_ms": 0})).await;
    }
    cluster
}

async fn held(cluster: &Cluster) -> usize {
    let to = cluster.members[0].client;
    let all: Value = ask(to, "GET", "/v1/allocations", &[], &Value::Null).await.json();
    all["items"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_interface_is_allocated_with_the_first_and_waits_for_its_own_add() {
    let cluster = with_lan_and_fabric().await;
    let list = json!([{"name": "eth0", "ipv4_pools": ["lan"]}, {"name": "net1", "ipv4_pools": ["fabric"]}]);
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=w0;K8S_POD_UID=u0";
    let run = async |verb: &'static str, interface: &'static str| {
        let conf = listed(&cluster.urls(), if interface == "eth0" { "lan" } else { "fabric" }, &list);
        Plugin::new(verb, "c1", &conf).arguments(pod).interface(interface).run().await
    };
    let interfaces = async || {
        let to = cluster.members[0].client;
        let shown: Value = ask(to, "GET", "/v1/endpoints/pod/default/web/w0", &[], &Value::Null).await.json();
        let all = shown["status"]["interfaces"].as_array().unwrap().clone();
        let one = |one: &Value| {
            let address = one["addresses"][0]["address"].as_str().unwrap().to_owned();
            (one["name"].as_str().unwrap().to_owned(), address, one["preallocated"] == json!(true))
        };
        all.iter().map(one).collect::<Vec<_>>()
    };
    let eth0 = run("ADD", "eth0").await.addresses();
    assert_eq!(eth0.len(), 1, "a result is of one interface");
    let expected = |preallocated| {
        [("eth0", "10.1.0.1/29", false), ("net1", "10.9.0.1/29", preallocated)]
            .map(|(name, address, preallocated)| (name.to_owned(), address.to_owned(), preallocated))
    };
    assert_eq!(interfaces().await, expected(true));
    run("CHECK", "net1").await.fails(117);
    assert_eq!(run("ADD", "net1").await.addresses(), ["10.9.0.1".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(interfaces().await, expected(false));
    for interface in ["eth0", "net1"] {
        run("CHECK", interface).await.succeeds();
        run("ADD", interface).await.succeeds();
        run("DEL", interface).await.succeeds();
    }
    assert_eq!(held(&cluster).await, 0);
    // A preallocated one ends with the other.
    run("ADD", "eth0").await.succeeds();
    assert_eq!(held(&cluster).await, 2);
    run("DEL", "eth0").await.succeeds();
    assert_eq!(held(&cluster).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_contradict_themselves_and_exhausted_ones_take_nothing() {
    let cluster = with_lan_and_fabric().await;
    let add = async |container: &str, list: Value| {
        let conf = listed(&cluster.urls(), "lan", &list);
        Plugin::new("ADD", container, &conf).run().await
    };
    let one = |name: &str, pool: &str| json!({"interface": name, "ipv4": [pool]});
    // Entries 22 and 23 of Spiderpool's list.
    let texts = add("c0", json!([one("net1", "fabric")])).await.fails(7);
    assert!(texts.contains("the attachment's interface eth0 is not among those named"), "{texts}");
    let twice = json!([one("eth0", "lan"), one("net1", "fabric"), one("net1", "lan")]);
    let texts = add("c0", twice).await.fails(7);
    assert!(texts.contains("interface net1 is named twice"), "{texts}");
    let many: Vec<Value> = (0..17).map(|i| one(&format!("net{i}"), "lan")).collect();
    let texts = add("c0", Value::Array(many)).await.fails(7);
    assert!(texts.contains("17 interfaces; at most 16"), "{texts}");
    let texts = add("c0", json!([one("eth0", "lan"), {"ipv4": ["fabric"]}])).await.fails(7);
    assert!(texts.contains("must have a name in each entry, or in none"), "{texts}");
    // 24: the second pool runs out. Nothing of the first is taken, over any number of retries.
    let both = json!([{"ipv4": ["lan"]}, {"ipv4": ["fabric"]}, {"ipv4": ["fabric"]}]);
    for container in ["c1", "c2", "c3"] {
        add(container, both.clone()).await.succeeds();
    }
    assert_eq!(held(&cluster).await, 9, "six of fabric, which has no more");
    for container in ["c4", "c5", "c6", "c4"] {
        let texts = add(container, both.clone()).await.fails(101);
        assert!(texts.contains("net1 IPv4: 0 free in fabric"), "{texts}");
    }
    assert_eq!(held(&cluster).await, 9);
    add("c7", json!([one("eth0", "lan")])).await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_of_a_pod_are_of_the_interface_that_reaches_their_gateway() {
    let cluster = Cluster::up(1).await;
    for (name, cidr, gateway) in [("lan", "10.1.0.0/28", "10.1.0.1"), ("fabric", "10.9.0.0/28", "10.9.0.1")] {
        let subnet = json!({"name": name, "cidr": cidr, "gateway": gateway, "mtu": 9000});
        put(&cluster.ask(), "subnets", subnet).await;
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": name})).await;
    }
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=w0;K8S_POD_UID=u0";
    let list = json!([{"ipv4": ["lan"]}, {"ipv4": ["fabric"]}]);
    let add = async |interface: &'static str, arguments: Value, ipam: Value| {
        let mut conf = listed(&cluster.urls(), if interface == "eth0" { "lan" } else { "fabric" }, &list);
        conf["cniVersion"] = json!("1.1.0");
        for (key, value) in arguments.as_object().unwrap() {
            conf["args"]["cni"][key] = value.clone();
        }
        for (key, value) in ipam.as_object().unwrap() {
            conf["ipam"][key] = value.clone();
        }
        let done = Plugin::new("ADD", "c1", &conf).arguments(pod).interface(interface).run().await;
        let result: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
        let routes = result["routes"].as_array().cloned().unwrap_or_default();
        let route = |route: &Value| {
            assert_eq!(route["mtu"], 9000);
            format!("{} {}", route["dst"].as_str().unwrap(), route["gw"].as_str().unwrap())
        };
        routes.iter().map(route).collect::<Vec<_>>()
    };
    // Entry 18: the annotation's routes; entry 21: the interface of the default route.
    let routes = json!([{"dst": "10.7.0.0/16", "gw": "10.1.0.9"}, {"dst": "10.8.0.0/16", "gw": "10.9.0.9"}]);
    let printed = json!({"routes": routes, "default_route_interface": "eth0"});
    let eth0 = add("eth0", printed.clone(), json!({})).await;
    assert_eq!(eth0, ["0.0.0.0/0 10.1.0.1", "10.7.0.0/16 10.1.0.9"]);
    let net1 = add("net1", printed.clone(), json!({})).await;
    assert_eq!(net1, ["10.8.0.0/16 10.9.0.9"]);
    // A repetition, with any list.
    assert_eq!(add("net1", json!({}), json!({})).await, net1);
    assert_eq!(add("eth0", json!({}), json!({"clean_gateway": true})).await, eth0);
    let to = cluster.members[0].client;
    let shown: Value =
        ask(to, "GET", "/v1/attachments/default/n1/fabric/c1/net1", &[], &Value::Null).await.json();
    let address = &shown["interface"]["addresses"][0];
    assert_eq!((&address["clean_gateway"], &address["mtu"]), (&json!(true), &json!(9000)), "{shown}");
    assert_eq!(address["routes"][0]["gateway"], "10.9.0.9");
}
