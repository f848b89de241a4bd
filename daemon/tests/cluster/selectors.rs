//! Pool selectors, through the real plugin, over HTTP, and with `ipamctl`.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::subnet_with_pool;
use crate::support::plugin::{Plugin, network};
use crate::support::raw::ask;

/// One configuration for all nodes: each gets its own zone's addresses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_two_subnets_and_the_right_address_on_each() {
    let cluster = Cluster::up(3).await;
    subnet_with_pool(&cluster.ask(), "zone-a", "10.1.0.0/24", json!({"node_names": ["a1", "a2"]})).await;
    subnet_with_pool(&cluster.ask(), "zone-b", "10.2.0.0/24", json!({"node_names": ["b1"]})).await;
    let on = |node: &str| network(&cluster.urls(), node, &["zone-*"]);
    let add = async |node: &str, container: &str| Plugin::new("ADD", container, &on(node)).run().await;
    assert_eq!(add("a1", "c1").await.addresses()[0].to_string(), "10.1.0.1");
    assert_eq!(add("b1", "c2").await.addresses()[0].to_string(), "10.2.0.1");
    assert_eq!(add("a2", "c3").await.addresses()[0].to_string(), "10.1.0.2");
    let why = add("c1", "c4").await.fails(104);
    assert!(why.contains("zone-a is for other nodes; zone-b is for other nodes"), "{why}");
    // The same without naming them.
    for zone in ["zone-a", "zone-b"] {
        let call = json!({"default": true});
        let answer = ask(cluster.members[0].client, "PATCH", &format!("/v1/pools/{zone}"), &[], &call).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let unnamed = network(&cluster.urls(), "b1", &[]);
    let given = Plugin::new("ADD", "c5", &unnamed).run().await;
    assert_eq!(given.addresses()[0].to_string(), "10.2.0.2");
}

/// Labels come as the CNI conventions have them; the attachment is the configuration's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_realms_and_attachments_reach_the_pools_through_the_plugin() {
    let cluster = Cluster::up(1).await;
    subnet_with_pool(&cluster.ask(), "db", "10.1.0.0/24", json!({"endpoint_selector": "app=db,!legacy"}))
        .await;
    subnet_with_pool(&cluster.ask(), "east", "10.2.0.0/24", json!({"realms": ["east"]})).await;
    subnet_with_pool(&cluster.ask(), "west", "10.3.0.0/24", json!({"realms": ["west"]})).await;
    subnet_with_pool(&cluster.ask(), "san", "10.4.0.0/24", json!({"network_attachments": ["san"]})).await;
    let run = async |container: &str, conf: &Value| Plugin::new("ADD", container, conf).run().await;
    let conf = |pools: &[&str], change: fn(&mut Value)| {
        let mut conf = network(&cluster.urls(), "n1", pools);
        change(&mut conf);
        conf
    };
    let labelled = conf(&["db"], |conf| {
        conf["args"] = json!({"cni": {"labels": [{"key": "app", "value": "db"}]}});
    });
    assert_eq!(run("c1", &labelled).await.addresses()[0].to_string(), "10.1.0.1");
    let why = run("c2", &conf(&["db"], |_| {})).await.fails(104);
    assert!(why.contains("db is for endpoints with other labels"), "{why}");
    let odd = conf(&["db"], |conf| conf["args"] = json!({"cni": {"labels": {"app": "db"}}}));
    assert!(run("c2", &odd).await.fails(7).contains("args.cni.labels must be a list"));

    // The same pod of the same namespace in two clusters that share one configuration.
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME=w0";
    let mut held = Vec::new();
    for realm in ["east", "west"] {
        let mut conf = network(&cluster.urls(), "n1", &["*st"]);
        conf["ipam"]["realm"] = json!(realm);
        held.push(Plugin::new("ADD", "c3", &conf).arguments(pod).run().await.addresses()[0].to_string());
    }
    assert_eq!(held, ["10.2.0.1", "10.3.0.1"]);

    assert!(run("c4", &conf(&["san"], |_| {})).await.fails(104).contains("other network attachments"));
    let named = conf(&["san"], |conf| conf["name"] = json!("san"));
    assert_eq!(run("c4", &named).await.addresses()[0].to_string(), "10.4.0.1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pool_selectors_are_shown_kept_and_checked() {
    let cluster = Cluster::up(1).await;
    let to = cluster.members[0].client;
    let printed = json!({
        "realms": ["east"], "node_names": ["a1"], "namespaces": ["web"],
        "endpoint_selector": "app=web,tier in (front,back)", "network_attachments": ["kube-system/macvlan"],
    });
    subnet_with_pool(&cluster.ask(), "web", "10.1.0.0/24", printed.clone()).await;
    let shown: Value = ask(to, "GET", "/v1/pools/web", &[], &Value::Null).await.json();
    for (field, value) in printed.as_object().unwrap() {
        assert_eq!(shown[field], *value, "{field}");
    }
    // What was read can be sent back.
    let same = ask(to, "PUT", "/v1/pools/web", &[], &shown).await;
    assert_eq!((same.status, same.json::<Value>()["meta"].clone()), (200, shown["meta"].clone()));

    let many: Vec<String> = (0..1025).map(|at| format!("n{at}")).collect();
    for (change, status, code) in [
        (json!({"endpoint_selector": "app in (web"}), 422, "invalid-field"),
        (json!({"endpoint_selector": "app like web"}), 422, "invalid-field"),
        (json!({"node_names": ["a/b"]}), 422, "invalid-field"),
        (json!({"network_attachments": ["a/b/c"]}), 422, "invalid-field"),
        (json!({"node_names": many}), 422, "limit-exceeded"),
        (json!({"node_name": ["a1"]}), 400, "unknown-field"),
    ] {
        let refused = ask(to, "PATCH", "/v1/pools/web", &[], &change).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{problem}");
    }
    let ask_for = async |interface: Value, labels: Value| {
        let body =
            json!({"endpoint": {"kind": "host", "name": "h"}, "labels": labels, "interfaces": [interface]});
        let refused = ask(to, "POST", "/v1/allocations", &[], &body).await;
        let problem: Value = refused.json();
        (refused.status, problem["code"].as_str().unwrap().to_owned(), problem["detail"].to_string())
    };
    let long = "x".repeat(300);
    for (interface, labels, status, code, says) in [
        (
            json!({"name": "e", "ipv4_pools": ["w[eb"]}),
            json!({}),
            422,
            "invalid-field",
            "not a pattern of names",
        ),
        (json!({"name": "e", "ipv4_pools": ["x*"]}), json!({}), 404, "not-found", "pool matches x*"),
        (json!({"name": "e", "subnets": ["none"]}), json!({}), 404, "not-found", "subnet none"),
        (json!({"name": "e", "ipv6_pools": ["*"]}), json!({}), 404, "not-found", "IPv6"),
        (json!({"name": "e", "ipv4_pools": ["web"]}), json!({"app": long}), 422, "limit-exceeded", "label"),
        (json!({"name": "e", "network_attachment": "a b"}), json!({}), 422, "invalid-field", "a b"),
        (json!({"name": "e", "ipv4_pools": ["web"]}), json!({}), 409, "no-pool-fits", "for other nodes"),
    ] {
        let (got, found, detail) = ask_for(interface, labels).await;
        assert_eq!((got, found.as_str()), (status, code), "{detail}");
        assert!(detail.contains(says), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selectors_are_set_and_cleared_on_the_command_line() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("pool create db --subnet lan --for-node n1 --for-namespace db --for-endpoints app=db --strategy random").await;
    let shown = done("pool show db").await.stdout;
    assert!(shown.contains("only for     nodes n1   namespaces db   endpoints app=db"), "{shown}");
    let refused = ipamctl(&servers, "allocate --endpoint pod/db/p0 --pool db --node n1").await.ends(1);
    assert!(refused.stderr.contains("db is for endpoints with other labels"), "{refused:?}");
    done("allocate --endpoint pod/db/p0 --pool db --node n1 --label app=db").await;
    done("pool set db --for-all --for-node n2").await;
    let shown = done("pool show db").await.stdout;
    assert!(shown.contains("only for     nodes n2\n"), "{shown}");
    done("allocate --endpoint host/h0 --pool db --node n2").await;
}
