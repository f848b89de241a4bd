//! Sticky endpoints, through the real plugin, over HTTP and with `ipamctl`. A `StatefulSet`'s pod moves, a
//! machine migrates, and a controller scales down.

use serde_json::{Value, json};

use crate::cluster::command_line::ipamctl;
use crate::support::Cluster;
use crate::support::ask::{allocations, put};
use crate::support::plugin::{Outcome, Plugin, network};
use crate::support::raw::ask;

/// Three members, a subnet, and pools of it.
async fn with(pools: &[(&str, &str)]) -> Cluster {
    let cluster = Cluster::up(3).await;
    put(&cluster.ask(), "subnets", json!({"name": "lan", "cidr": "10.1.0.0/24"})).await;
    for (name, range) in pools {
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": "lan", "ranges": [range]})).await;
    }
    cluster
}

/// One run for a pod's container on a node. `said` is the pod's part of its configuration.
async fn run(
    cluster: &Cluster,
    verb: &'static str,
    (node, container): (&str, &str),
    pod: &str,
    pools: &[&str],
    printed: Value,
) -> Outcome {
    let mut conf = network(&cluster.urls(), node, pools);
    conf["args"] = json!({"cni": printed});
    let (name, uid) = pod.split_once(' ').unwrap();
    let pod = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name};K8S_POD_UID={uid}");
    Plugin::new(verb, container, &conf).arguments(&pod).run().await
}

fn stateful() -> Value {
    json!({"controller": {"group": "apps", "kind": "StatefulSet", "name": "db", "uid": "s1"}})
}

#[track_caller]
fn address(outcome: &Outcome) -> String {
    outcome.addresses()[0].to_string()
}

async fn endpoint(cluster: &Cluster, path: &str) -> Value {
    let path = format!("/v1/endpoints/{path}");
    ask(cluster.members[0].client, "GET", &path, &[], &Value::Null).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_pod_that_moves_node_keeps_its_address() {
    let cluster = with(&[("db", "10.1.0.10-10.1.0.11")]).await;
    let add = async |place, pod| run(&cluster, "ADD", place, pod, &["db"], stateful()).await;
    assert_eq!(address(&add(("n1", "c1"), "db-0 u1").await), "10.1.0.10");
    run(&cluster, "DEL", ("n1", "c1"), "db-0 u1", &["db"], stateful()).await.succeeds();
    let kept = endpoint(&cluster, "pod/default/shop/db-0").await;
    assert_eq!((&kept["sticky"], &kept["status"]["interfaces"][0]["kept"]), (&json!(true), &json!(true)));
    // Others get what is left, and then nothing.
    let other = async |container: &str| {
        run(&cluster, "ADD", ("n1", container), &format!("{container} u"), &["db"], json!({})).await
    };
    assert_eq!(address(&other("w1").await), "10.1.0.11");
    other("w2").await.fails(101);
    // On another node, as another pod in another container, and possibly through another member.
    assert_eq!(address(&add(("n2", "c2"), "db-0 u2").await), "10.1.0.10");
    let back = endpoint(&cluster, "pod/default/shop/db-0").await;
    let interface = &back["status"]["interfaces"][0];
    assert_eq!((&back["uid"], &interface["attachment"]["node"]), (&json!("u2"), &json!("n2")), "{back:#}");
    // What the first node deletes late is not what the second one has.
    run(&cluster, "DEL", ("n1", "c1"), "db-0 u1", &["db"], stateful()).await.succeeds();
    run(&cluster, "CHECK", ("n2", "c2"), "db-0 u2", &["db"], stateful()).await.succeeds();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_pod_whose_pools_changed_moves_and_nothing_is_left() {
    let cluster = with(&[("a", "10.1.0.10-10.1.0.19"), ("b", "10.1.0.20-10.1.0.29")]).await;
    let on = async |verb, container, pools: &[&str]| {
        run(&cluster, verb, ("n1", container), "db-0 u1", pools, stateful()).await
    };
    assert_eq!(address(&on("ADD", "c1", &["a"]).await), "10.1.0.10");
    on("DEL", "c1", &["a"]).await.succeeds();
    assert_eq!(address(&on("ADD", "c2", &["b", "a"]).await), "10.1.0.10", "still one of them");
    on("DEL", "c2", &["b", "a"]).await.succeeds();
    assert_eq!(address(&on("ADD", "c3", &["b"]).await), "10.1.0.20");
    assert_eq!(allocations(&cluster.ask()).await.len(), 1);
    let events = "/v1/addresses/10.1.0.10/history";
    let history: Value = ask(cluster.members[0].client, "GET", events, &[], &Value::Null).await.json();
    let told = |event: &Value| (event["type"].clone(), event["reason"].clone());
    let told: Vec<_> = history["events"].as_array().unwrap().iter().map(told).collect();
    for (event, reason) in [
        ("address.released", "moved"),
        ("address.detached", "kept"),
        ("address.attached", "reattached"),
        ("address.allocated", "ADD"),
    ] {
        assert!(told.contains(&(json!(event), json!(reason))), "{event} {reason}: {told:?}");
    }
    // While it was kept it was its endpoint's.
    let then = format!("{events}?at={}", history["events"][1]["at"].as_str().unwrap());
    let then: Value = ask(cluster.members[0].client, "GET", &then, &[], &Value::Null).await.json();
    assert_eq!((&then["state"], &then["last_holder"]["name"]), (&json!("allocated"), &json!("db-0")));
}

/// As KubeVirt does it: each side is a pod of its own, and neither is the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_migrates_has_its_address_on_both_nodes() {
    let cluster = with(&[("vm", "10.1.0.10-10.1.0.11")]).await;
    let printed =
        json!({"controller": {"group": "kubevirt.io", "kind": "VirtualMachineInstance", "name": "mail"}});
    let on = async |verb, place, pod| run(&cluster, verb, place, pod, &["vm"], printed.clone()).await;
    let (source, target) = (("n1", "c1"), ("n2", "c2"));
    assert_eq!(address(&on("ADD", source, "virt-launcher-mail-a u1").await), "10.1.0.10");
    assert_eq!(address(&on("ADD", target, "virt-launcher-mail-b u2").await), "10.1.0.10");
    let both = endpoint(&cluster, "vm/default/shop/mail").await;
    let interface = &both["status"]["interfaces"][0];
    let nodes = (&interface["attachment"]["node"], &interface["also_attached"][0]["node"]);
    assert_eq!(nodes, (&json!("n2"), &json!("n1")), "{both:#}");
    let shown = ipamctl(&cluster.urls(), "endpoint show vm/shop/mail").await.ends(0).stdout;
    for words in ["sticky", "VirtualMachineInstance/mail", "eth0 on node n1", "eth0 on node n2"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // Both are as their runtimes remember them, in either order.
    on("CHECK", source, "virt-launcher-mail-a u1").await.succeeds();
    on("DEL", source, "virt-launcher-mail-a u1").await.succeeds();
    on("CHECK", target, "virt-launcher-mail-b u2").await.succeeds();
    on("CHECK", source, "virt-launcher-mail-a u1").await.fails(117);
    on("DEL", target, "virt-launcher-mail-b u2").await.succeeds();
    let shown = ipamctl(&cluster.urls(), "endpoint show vm/shop/mail").await.ends(0).stdout;
    assert!(shown.contains("eth0 is kept for the endpoint"), "{shown}");
    assert_eq!(allocations(&cluster.ask()).await.len(), 1, "kept");
    // The machine is deleted.
    let gone = "endpoint scale kubevirt.io/VirtualMachineInstance/mail --namespace shop --replicas 0";
    let printed = ipamctl(&cluster.urls(), gone).await.ends(0);
    assert!(format!("{printed:?}").contains("10.1.0.10"), "{printed:?}");
    assert!(allocations(&cluster.ask()).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_that_restarts_under_a_living_pod_keeps_its_address() {
    let cluster = with(&[("web", "10.1.0.10-10.1.0.19")]).await;
    let on = async |verb, container, uid: &str| {
        run(&cluster, verb, ("n1", container), &format!("web-1 {uid}"), &["web"], json!({})).await
    };
    let first = address(&on("ADD", "c1", "u1").await);
    assert_eq!(address(&on("ADD", "c2", "u1").await), first);
    assert_ne!(address(&on("ADD", "c3", "u2").await), first, "another pod of that name");
    on("DEL", "c1", "u1").await.succeeds();
    on("CHECK", "c2", "u1").await.succeeds();
    on("DEL", "c2", "u1").await.succeeds();
    assert_eq!(allocations(&cluster.ask()).await.len(), 1, "that of the other pod");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fewer_replicas_release_or_keep() {
    let cluster = with(&[("db", "10.1.0.10-10.1.0.19")]).await;
    let servers = cluster.urls();
    let done = async |line: &str| ipamctl(&servers, line).await.ends(0);
    done("pool create kept --subnet lan --range 10.1.0.30-10.1.0.39 --scale-down keep").await;
    let shown = done("pool show kept").await.stdout;
    assert!(shown.contains("scale-down"), "{shown}");
    for (number, pool) in [(0, "db"), (1, "db"), (2, "kept"), (3, "db")] {
        let (container, pod) = (format!("c{number}"), format!("db-{number} u"));
        let mut printed = stateful();
        if number == 3 {
            printed["scale_down"] = json!("keep");
        }
        let place = ("n1", container.as_str());
        run(&cluster, "ADD", place, &pod, &[pool], printed.clone()).await.succeeds();
        if number > 0 {
            run(&cluster, "DEL", place, &pod, &[pool], printed).await.succeeds();
        }
    }
    let scale = async |more: Value| {
        let mut body = json!({"namespace": "shop", "replicas": 0, "controller": stateful()["controller"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(cluster.members[0].client, "POST", "/v1/controllers/scale", &[], &body).await
    };
    let addresses = async |more: Value| scale(more).await.json::<Value>()["addresses"].clone();
    assert_eq!(addresses(json!({"replicas": 2})).await, json!([]));
    assert_eq!(addresses(json!({})).await, json!(["10.1.0.11"]), "db-0 lives, two are kept");
    run(&cluster, "DEL", ("n1", "c0"), "db-0 u", &["db"], stateful()).await.succeeds();
    let left: Vec<String> =
        allocations(&cluster.ask()).await.iter().map(|one| one.endpoint.name.to_string()).collect();
    assert_eq!(left, ["db-2", "db-3"]);
    done("pool set kept --scale-down release").await;
    assert_eq!(addresses(json!({})).await, json!(["10.1.0.30"]));

    let wrong = json!({"kind": "Stateful Set", "name": "db"});
    for (more, status, code) in [
        (json!({"controller": wrong}), 422, "invalid-field"),
        (json!({"controller": {"kind": "StatefulSet"}}), 422, "invalid-field"),
        (json!({"replicas": -1}), 422, "invalid-field"),
        (json!({"replica": 1}), 400, "unknown-field"),
    ] {
        let refused = scale(more).await;
        let problem: Value = refused.json();
        assert_eq!((refused.status, problem["code"].as_str().unwrap()), (status, code), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contradictory_request_is_refused() {
    let cluster = with(&[("db", "10.1.0.10-10.1.0.19")]).await;
    let deployment = json!({"group": "apps", "kind": "Deployment", "name": "web"});
    for (printed, code) in [
        (json!({"controller": deployment, "sticky": true}), 7),
        (json!({"controller": deployment, "scale_down": "keep"}), 7),
        (json!({"sticky": false, "scale_down": "keep"}), 7),
        (json!({"sticky": "yes"}), 7),
        (json!({"scale_down": "forget"}), 7),
        (json!({"controller": "StatefulSet/db"}), 7),
        (json!({"controller": {"kind": "StatefulSet"}}), 7),
        (json!({"controller": {"kind": "StatefulSet", "name": "../db"}}), 7),
    ] {
        run(&cluster, "ADD", ("n1", "c1"), "db-0 u1", &["db"], printed).await.fails(code);
    }
    let servers = cluster.urls();
    let line = "allocate --endpoint pod/shop/web-1 --pool db --controller apps/Deployment/web --sticky";
    let refused = ipamctl(&servers, line).await.ends(2);
    assert!(refused.stderr.contains("their names are not reused"), "{refused:?}");
    ipamctl(&servers, "allocate --endpoint host/a --controller db").await.ends(2);
    // Pinned by hand before it first runs.
    let line =
        "allocate --endpoint pod/shop/db-0 --pool db --controller apps/StatefulSet/db --address 10.1.0.15";
    ipamctl(&servers, line).await.ends(0);
    let given = run(&cluster, "ADD", ("n1", "c1"), "db-0 u1", &["db"], stateful()).await;
    assert_eq!(address(&given), "10.1.0.15");
}
