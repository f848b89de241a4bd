//! Nodes and namespaces: written over HTTP and with `ipamctl`, selected by pools, used by the plugin.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::subnet_with_pool;
use crate::support::plugin::{Plugin, network};
use crate::support::raw::ask;

/// The zone example once more, by the labels of nodes: a node is moved by a label, and no pool changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_gets_of_its_zone_by_its_labels() {
    let cluster = Cluster::up(3).await;
    let to = cluster.members[0].client;
    for (name, cidr, zone) in
        [("zone-a", "10.1.0.0/24", "zone=a"), ("zone-b", "10.2.0.0/24", "zone in (b,c)")]
    {
        let selected = json!({"node_selector": zone, "default": true});
        subnet_with_pool(&cluster.ask(), name, cidr, selected).await;
    }
    let on = |node: &str| network(&cluster.urls(), node, &[]);
    let add = async |node: &str, container: &str| Plugin::new("ADD", container, &on(node)).run().await;
    let why = add("n1", "c1").await.fails(104);
    assert!(
        why.contains("zone-a is for nodes with certain labels, and this node has no description"),
        "{why}"
    );
    for (node, zone) in [("n1", "a"), ("n2", "c")] {
        let printed = json!({"name": node, "labels": {"zone": zone}});
        let answer = ask(to, "PUT", &format!("/v1/nodes/default/{node}"), &[], &printed).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    assert_eq!(add("n1", "c1").await.addresses()[0].to_string(), "10.1.0.1");
    assert_eq!(add("n2", "c2").await.addresses()[0].to_string(), "10.2.0.1");
    let moved = ask(to, "PATCH", "/v1/nodes/default/n1", &[], &json!({"labels": {"zone": "b"}})).await;
    assert_eq!(moved.status, 200, "{moved:?}");
    assert_eq!(add("n1", "c3").await.addresses()[0].to_string(), "10.2.0.2");
    // Its boot is known from its requests, and it still holds its addresses.
    let shown: Value = ask(to, "GET", "/v1/nodes/default/n1", &[], &Value::Null).await.json();
    assert!(shown["status"]["boot_id"].is_string(), "{shown}");
    assert_eq!(add("n1", "c1").await.addresses()[0].to_string(), "10.1.0.1");
}

/// Order of sources: the container's request, its namespace, the configuration, the default pools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_who_names_pools_counts() {
    let cluster = Cluster::up(1).await;
    subnet_with_pool(&cluster.ask(), "common", "10.1.0.0/24", json!({"default": true})).await;
    subnet_with_pool(&cluster.ask(), "conf", "10.2.0.0/24", json!({})).await;
    subnet_with_pool(&cluster.ask(), "team", "10.3.0.0/24", json!({"namespace_selector": "team=web"})).await;
    subnet_with_pool(&cluster.ask(), "own", "10.4.0.0/24", json!({})).await;
    let pod = |name: &str| format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=web;K8S_POD_NAME={name}");
    let given = async |name: &str, conf: &Value| {
        let answer = Plugin::new("ADD", name, conf).arguments(&pod(name)).run().await;
        answer.addresses()[0].to_string()
    };
    let conf = |pools: &[&str]| network(&cluster.urls(), "n1", pools);
    assert_eq!(given("w1", &conf(&[])).await, "10.1.0.1");
    assert_eq!(given("w2", &conf(&["conf"])).await, "10.2.0.1");
    let printed = json!({"name": "web", "labels": {"team": "web"}, "default_ipv4_pools": ["te*"]});
    let to = cluster.members[0].client;
    assert_eq!(ask(to, "PUT", "/v1/namespaces/default/web", &[], &printed).await.status, 201);
    assert_eq!(given("w3", &conf(&["conf"])).await, "10.3.0.1");
    let mut own = conf(&["conf"]);
    own["args"] = json!({"cni": {"ipv4_pools": ["own"]}});
    assert_eq!(given("w4", &own).await, "10.4.0.1");
    own["args"] = json!({"cni": {"ipv4_pools": ["own"], "subnets": ["conf"]}});
    assert_eq!(given("w5", &own).await, "10.2.0.2");
    own["args"] = json!({"cni": {"subnets": ["no/name"]}});
    let odd = Plugin::new("ADD", "w6", &own).arguments(&pod("w6")).run().await;
    assert!(odd.fails(7).contains("args.cni.subnets"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_resources_like_others() {
    let cluster = Cluster::up(3).await;
    let to = cluster.members[0].client;
    let post = ask(to, "POST", "/v1/nodes", &[], &json!({"realm": "prod", "name": "Worker_1"})).await;
    assert_eq!(post.status, 201, "{post:?}");
    assert_eq!(post.headers["location"], "/v1/nodes/prod/Worker_1");
    let shown = ask(to, "GET", "/v1/nodes/prod/Worker_1", &[], &Value::Null).await;
    let etag = shown.headers["etag"].clone();
    let stale = ask(to, "PATCH", "/v1/nodes/prod/Worker_1", &[("if-match", "\"1\"")], &json!({})).await;
    assert_eq!(stale.status, 412, "{stale:?}");
    let fresh = [("if-match", etag.as_str())];
    let change = json!({"labels": {"zone": "a"}});
    let changed = ask(to, "PATCH", "/v1/nodes/prod/Worker_1", &fresh, &change).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    // Both kinds in one step, all or none.
    let steps = json!({"steps": [
        {"method": "PUT", "path": "/v1/nodes/default/n1", "body": {"name": "n1", "labels": {"zone": "b"}}},
        {"method": "POST", "path": "/v1/namespaces", "body": {"name": "web", "default_ipv4_pools": ["web-*"]}},
        {"method": "PATCH", "path": "/v1/nodes/default/n1", "body": {"description": "moved"}},
    ]});
    let done = ask(to, "POST", "/v1/transactions", &[], &steps).await;
    assert_eq!(done.status, 200, "{done:?}");
    let listed = async |query: &str| {
        let page: Value = ask(to, "GET", &format!("/v1/nodes{query}"), &[], &Value::Null).await.json();
        let names = page["items"].as_array().unwrap().iter().map(|item| item["name"].to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed("").await, "\"n1\" \"Worker_1\"");
    assert_eq!(listed("?realm=prod").await, "\"Worker_1\"");
    assert_eq!(listed("?name=n1").await, "\"n1\"");
    assert_eq!(listed("?labels=zone%3Db").await, "\"n1\"");
    let first: Value = ask(to, "GET", "/v1/nodes?limit=1", &[], &Value::Null).await.json();
    let next = first["next"].as_str().unwrap();
    assert_eq!(listed(&format!("?limit=1&cursor={next}")).await, "\"Worker_1\"");

    let many: Vec<String> = (0..1025).map(|at| format!("p{at}")).collect();
    for (method, path, body, status, code) in [
        ("PUT", "/v1/nodes/default/n2", json!({"name": "n3"}), 422, "conflicting-fields"),
        ("PUT", "/v1/nodes/prod/n2", json!({"name": "n2"}), 422, "conflicting-fields"),
        ("PUT", "/v1/nodes/default/n2", json!({"name": "n2", "zone": "a"}), 400, "unknown-field"),
        ("POST", "/v1/nodes", json!({"realm": "A", "name": "n2"}), 422, "invalid-field"),
        ("POST", "/v1/nodes", json!({"name": "n1"}), 409, "already-exists"),
        ("PATCH", "/v1/nodes/default/n1", json!({"name": "n9"}), 422, "immutable-field"),
        ("PATCH", "/v1/nodes/default/n9", json!({}), 404, "not-found"),
        ("GET", "/v1/nodes/Default/n1", Value::Null, 404, "not-found"),
        ("DELETE", "/v1/namespaces/default/none", Value::Null, 404, "not-found"),
        ("POST", "/v1/namespaces", json!({"name": "x", "default_ipv4_pools": ["["]}), 422, "invalid-field"),
        ("POST", "/v1/namespaces", json!({"name": "x", "default_ipv4_pools": many}), 422, "limit-exceeded"),
    ] {
        let refused = ask(to, method, path, &[], &body).await;
        let problem: Value = refused.json();
        assert_eq!(
            (refused.status, problem["code"].as_str().unwrap_or_default()),
            (status, code),
            "{path}: {problem}"
        );
    }
    let missing: Value = ask(to, "GET", "/v1/nodes/default/n11", &[], &Value::Null).await.json();
    assert!(missing["detail"].as_str().unwrap().contains("did you mean default/n1?"), "{missing}");
    assert_eq!(ask(to, "DELETE", "/v1/nodes/default/n1", &[], &Value::Null).await.status, 204);
    let events: Value = ask(to, "GET", "/v1/events?kind=node", &[], &Value::Null).await.json();
    let last = events["items"].as_array().unwrap();
    assert!(last.iter().any(|event| event["type"] == "node.deleted" && event["object"] == "default/n1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_described_on_the_command_line_and_by_files() {
    let cluster = Cluster::up(1).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("subnet create lan --cidr 10.1.0.0/24").await;
    done("pool create a --subnet lan --range 10.1.0.10-10.1.0.19 --for-nodes zone=a").await;
    done("pool create b --subnet lan --range 10.1.0.20-10.1.0.29 --for-namespaces team=web").await;
    assert!(done("pool show a").await.stdout.contains("only for     nodes zone=a\n"));
    done("node create n1 --label zone=a").await;
    done("node create prod/n1 --label zone=b --description elsewhere").await;
    done("namespace create web --label team=web --ipv4-pool b --ipv4-pool a").await;
    // Which pools of a subnet are for it is asked of the pools.
    done("allocate --endpoint pod/shop/s0 --subnet lan --node n1").await;
    // What its namespace names, of its node's zone first: names of nodes come before those of namespaces.
    let given = done("allocate --endpoint pod/web/w0 --node n1").await.stdout;
    assert!(given.contains("10.1.0.11/24") && given.contains("pool a"), "{given}");
    let shown = done("namespace show web").await.stdout;
    assert!(shown.contains("IPv4 pools   b,a"), "{shown}");
    let nodes = done("node list").await.stdout;
    assert!(nodes.contains("zone=a") && nodes.contains("zone=b"), "{nodes}");
    done("node set n1 --label zone=b").await;
    done("namespace set web --no-pools").await;
    done("node delete prod/n1 --yes").await;
    let gone = ipamctl(&servers, "node show prod/n1").await.ends(3);
    assert!(gone.stderr.contains("prod/n1 does not exist"), "{gone:?}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("places.yaml");
    std::fs::write(
        &file,
        "kind: node\nname: n1\nlabels: {zone: c}\n---\nkind: namespace\nrealm: prod\nname: web\n\
         default_ipv4_pools: [a]\n",
    )
    .unwrap();
    let file = file.display();
    let plan = ipamctl(&servers, &format!("diff -f {file}")).await;
    assert!(
        plan.stdout.contains("~ node default/n1") && plan.stdout.contains("+ namespace prod/web"),
        "{plan:?}"
    );
    done(&format!("apply -f {file} --yes")).await;
    assert!(done("node show n1").await.stdout.contains("zone=c"));
    // What was listed can be applied as it is: nothing changes.
    let listed = folder.path().join("listed.json");
    for kind in ["node", "namespace"] {
        std::fs::write(&listed, done(&format!("{kind} list -o json")).await.stdout).unwrap();
        let again = done(&format!("diff -f {}", listed.display())).await;
        assert!(again.stdout.is_empty() || again.stdout.contains("nothing"), "{again:?}");
    }
}
