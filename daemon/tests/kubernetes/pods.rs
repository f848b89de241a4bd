//! Facts of pods in the requests of their ADDs, and events of those that fail.

use ipam_api::agent::Verdict;
use serde_json::{Value, json};

use crate::kubernetes::scene::{EVENTS, NODE, Scene, owned};
use crate::support::ask::{put, subnet_with_pool};
use crate::support::plugin::Outcome;
use crate::support::raw::ask;
use crate::support::until;

#[track_caller]
fn address(outcome: &Outcome) -> String {
    outcome.addresses()[0].to_string()
}

async fn read(scene: &Scene, path: &str) -> Value {
    ask(scene.cluster.members[0].client, "GET", path, &[], &Value::Null).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_labels_of_a_pod_select_its_pool() {
    let scene = Scene::start("").await;
    let (web, db) = (scene.pod("w", "web", json!({})), scene.pod("d", "db", json!({})));
    assert_eq!(address(&scene.run("ADD", ("c1", "w", &web)).await), "10.1.0.1");
    assert_eq!(address(&scene.run("ADD", ("c2", "d", &db)).await), "10.2.0.1");
    // The plugin's own labels decide, where it has some.
    let mut conf = scene.agent.network(&[]);
    conf["args"] = json!({"cni": {"labels": [{"key": "app", "value": "db"}]}});
    let other = scene.pod("o", "web", json!({}));
    assert_eq!(address(&scene.run_with("ADD", ("c3", "o", &other), &conf).await), "10.2.0.2");
    // A new incarnation of the same name has its own labels at once.
    scene.run("DEL", ("c1", "w", &web)).await.succeeds();
    scene.remove("w");
    let again = scene.pod("w", "db", json!({}));
    assert_eq!(address(&scene.run("ADD", ("c4", "w", &again)).await), "10.2.0.3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_networks_annotation_selects_pools_by_attachment() {
    let scene = Scene::start("").await;
    let more = json!({"network_attachments": ["kube-system/lan"]});
    subnet_with_pool(&scene.cluster.ask(), "lan", "10.4.0.0/24", more).await;
    let mut conf = scene.agent.network(&["lan"]);
    conf["name"] = "wan".into();
    for (name, networks, is_served) in [
        ("short", "kube-system/lan@eth0", true),
        ("json", r#"[{"name":"lan","namespace":"kube-system","interface":"eth0"}]"#, true),
        ("other", "kube-system/wan@eth0", false),
    ] {
        let annotations = json!({"annotations": {"k8s.v1.cni.cncf.io/networks": networks}});
        let uid = scene.pod(name, "x", annotations);
        let outcome = scene.run_with("ADD", (name, name, &uid), &conf).await;
        if is_served {
            assert!(address(&outcome).starts_with("10.4.0."), "{outcome:?}");
        } else {
            assert!(outcome.fails(104).contains("lan is for other network attachments"), "{outcome:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_pod_keeps_its_address_over_incarnations() {
    let scene = Scene::start("").await;
    let set = json!({"metadata": {"name": "db", "uid": "s1"}, "spec": {"replicas": 2}});
    scene.api.put("/apis/apps/v1/namespaces/shop/statefulsets", set);
    let of_set = owned("apps/v1", "StatefulSet", "db", "s1");
    let first = scene.pod("db-0", "db", of_set.clone());
    let given = address(&scene.run("ADD", ("c1", "db-0", &first)).await);
    scene.run("DEL", ("c1", "db-0", &first)).await.succeeds();
    scene.remove("db-0");
    let other = scene.pod("other", "db", json!({}));
    assert_ne!(address(&scene.run("ADD", ("c2", "other", &other)).await), given);
    let second = scene.pod("db-0", "db", of_set);
    assert_ne!(first, second);
    assert_eq!(address(&scene.run("ADD", ("c3", "db-0", &second)).await), given);
    let endpoint = read(&scene, "/v1/endpoints/pod/default/shop/db-0").await;
    assert_eq!((&endpoint["sticky"], &endpoint["uid"]), (&json!(true), &json!(second)), "{endpoint:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_has_an_automatic_pool_for_its_replicas() {
    let scene = Scene::start("").await;
    let subnet = json!({"name": "lan", "cidr": "10.5.0.0/24", "automatic": {}});
    put(&scene.cluster.ask(), "subnets", subnet).await;
    let of = |kind: &str, name: &str, uid: &str| owned("apps/v1", kind, name, uid);
    let mut set = json!({"metadata": {"name": "web-1", "uid": "r1"}, "spec": {"replicas": 1}});
    set["metadata"]
        .as_object_mut()
        .unwrap()
        .extend(of("Deployment", "web", "d1").as_object().unwrap().clone());
    scene.api.put("/apis/apps/v1/namespaces/shop/replicasets", set);
    let deployment = json!({"metadata": {"name": "web", "uid": "d1"}, "spec": {"replicas": 3}});
    scene.api.put("/apis/apps/v1/namespaces/shop/deployments", deployment);
    let uid = scene.pod("web-1-a", "web", of("ReplicaSet", "web-1", "r1"));
    let mut conf = scene.agent.network(&[]);
    conf["args"] = json!({"cni": {"subnets": ["lan"], "automatic_pool": {"size": "+2"}}});
    assert!(address(&scene.run_with("ADD", ("c1", "web-1-a", &uid), &conf).await).starts_with("10.5.0."));
    let pools = read(&scene, "/v1/pools?subnet=lan").await;
    let pool = &pools["items"][0];
    let application = &pool["status"]["application"];
    assert_eq!(pool["status"]["counts"]["size"], 5, "{pool:#}");
    let controller = json!({"group": "apps", "kind": "Deployment", "name": "web", "uid": "d1"});
    assert_eq!((&application["controller"], &application["replicas"]), (&controller, &json!(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launcher_pod_gets_the_address_of_its_machine() {
    let scene = Scene::start("").await;
    let of_machine = owned("kubevirt.io/v1", "VirtualMachineInstance", "mail", "v1");
    let source = scene.pod("virt-launcher-mail-a", "web", of_machine.clone());
    let target = scene.pod("virt-launcher-mail-b", "web", of_machine);
    let given = address(&scene.run("ADD", ("c1", "virt-launcher-mail-a", &source)).await);
    // Both at once, as during a migration; here on one node.
    scene.run("DEL", ("c1", "virt-launcher-mail-a", &source)).await.succeeds();
    assert_eq!(address(&scene.run("ADD", ("c2", "virt-launcher-mail-b", &target)).await), given);
    let endpoint = read(&scene, "/v1/endpoints/vm/default/shop/mail").await;
    assert_eq!(endpoint["sticky"], true, "{endpoint:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_15_the_event_of_a_failing_pod_has_the_code_and_the_remedy() {
    let scene = Scene::start("").await;
    let uid = scene.pod("w", "other", json!({}));
    for _ in 0..3 {
        scene.run("ADD", ("c1", "w", &uid)).await.fails(104);
    }
    let events = until("the pod has an event", async || match scene.api.list(EVENTS) {
        events if events.is_empty() => Err(scene.agent.logged()),
        events => Ok(events),
    })
    .await;
    let event = &events[0];
    let object = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "w", "uid": uid});
    assert_eq!(event["involvedObject"], object);
    assert_eq!((&event["type"], &event["reason"]), (&json!("Warning"), &json!("NoPoolFits")));
    assert_eq!(event["source"], json!({"component": "ipam-agent", "host": NODE}));
    let message = event["message"].as_str().unwrap();
    assert!(message.starts_with("no-pool-fits: ") && message.contains("other labels"), "{message}");
    assert!(message.ends_with(ipam_api::Code::NoPoolFits.entry().help), "{message}");
    // Runtimes repeat a failed ADD every few seconds. Another problem of the pod is another event.
    let mut conf = scene.agent.network(&["none"]);
    conf["name"] = "lan".into();
    scene.run_with("ADD", ("c1", "w", &uid), &conf).await.fails(102);
    let reasons = until("another code has another event", async || {
        let events = scene.api.list(EVENTS);
        let mut reasons: Vec<String> =
            events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect();
        reasons.sort();
        if reasons.len() > 1 { Ok(reasons) } else { Err(format!("{events:?}")) }
    })
    .await;
    assert_eq!(reasons, ["NoPoolFits", "NotFound"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_uses_only_the_documented_verbs() {
    let scene = Scene::start("").await;
    scene.api.put(
        "/apis/apps/v1/namespaces/shop/daemonsets",
        json!({"metadata": {"name": "log", "uid": "d1"}, "status": {"desiredNumberScheduled": 2}}),
    );
    let uid = scene.pod("log-a", "web", owned("apps/v1", "DaemonSet", "log", "d1"));
    scene.run("ADD", ("c1", "log-a", &uid)).await.succeeds();
    scene.run("ADD", ("c2", "none", "u1")).await.fails(11);
    scene.sees(1, Verdict::Ok).await;
    until("the event is there", async || match scene.api.list(EVENTS).len() {
        0 => Err(scene.agent.logged()),
        _ => Ok(()),
    })
    .await;
    let document = include_str!("../../../deploy/docs/agent.md");
    for request in scene.api.requests() {
        let group = if request.group.is_empty() { "core" } else { &request.group };
        let row = document.lines().find(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let (first, second) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            first == group && second.split(", ").any(|plural| plural.trim_matches('`') == request.resource)
        });
        let verbs = row.and_then(|row| row.split('|').nth(3)).unwrap_or_default();
        let is_listed = verbs.split(',').any(|verb| verb.trim().trim_matches('`') == request.verb);
        assert!(is_listed, "{request:?}");
    }
}
