//! Tests of the pod view against a fake API server, and of the requests that the view completes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipam_api::limits::{LABELS_MAX, POD_EVENTS_WAITING_MAX};
use ipam_api::problem::{Code, Problem};
use serde_json::{Map, Value, json};
use test_apiserver::{ApiServer, Fault, Hostility};
use tokio::task::JoinHandle;

use super::{Object, Subject, Wanted, fill, is_allowed};
use crate::fakes::{FakeCluster, key};
use crate::journal::{Entry, Phase, Pod, Record};
use crate::node::Node;

const PODS: &str = "/api/v1/namespaces/shop/pods";
const WAIT: Duration = Duration::from_secs(10);

/// View of an agent while its tasks run.
struct Scene {
    server: ApiServer,
    node: Arc<Node>,
    tasks: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

impl Scene {
    async fn start(server: ApiServer) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let node = node(dir.path(), &server).await;
        let tasks = run(&node);
        Self { server, node, tasks, _dir: dir }
    }

    /// Uids of the known pods, by name.
    fn names(&self) -> Vec<String> {
        let attachments = self.node.journal.attachments();
        let mut names: Vec<String> = attachments.pods().iter().map(|pod| pod.name.to_string()).collect();
        names.sort();
        names
    }

    async fn knows(&self, names: &[&str]) {
        until(|| self.names() == names, || format!("{names:?}, not {:?}; {:?}", self.names(), self.state()))
            .await;
    }

    fn state(&self) -> super::State {
        self.node.pods.as_ref().unwrap().state()
    }

    async fn find(&self, name: &str, uid: Option<&str>) -> Result<Pod, String> {
        let wanted = wanted(name, uid);
        self.node.pods.as_ref().unwrap().find(&self.node.journal, &wanted, WAIT).await
    }

    fn requests(&self, verb: &str, resource: &str) -> usize {
        let requests = self.server.requests();
        requests.iter().filter(|one| one.verb == verb && one.resource == resource).count()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

async fn node(dir: &Path, server: &ApiServer) -> Arc<Node> {
    let more = format!("[kubernetes]\nserver = {:?}", server.url());
    FakeCluster::default().node(dir, &more).await
}

fn run(node: &Arc<Node>) -> JoinHandle<()> {
    let node = node.clone();
    tokio::spawn(async move { node.pods.as_ref().unwrap().run(&node.journal).await })
}

async fn until(is_so: impl Fn() -> bool, seen: impl Fn() -> String) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < 3 * WAIT, "{}", seen());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn wanted(name: &str, uid: Option<&str>) -> Wanted {
    Wanted { namespace: "shop".parse().unwrap(), name: name.parse().unwrap(), uid: uid.map(str::to_owned) }
}

fn pod(name: &str, more: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"app": name}},
        "spec": {"nodeName": "node-1"},
    });
    pod["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    pod
}

fn owned(name: &str, api_version: &str, kind: &str, owner: &str, uid: &str) -> Value {
    let owner =
        json!({"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid, "controller": true});
    pod(name, json!({"ownerReferences": [{"kind": "Other", "name": "x", "uid": "y"}, owner]}))
}

fn read(mut object: Value) -> Pod {
    object["metadata"]["namespace"] = "shop".into();
    serde_json::from_value::<Object>(object).unwrap().into_pod().unwrap()
}

#[tokio::test]
async fn pods_of_the_node_are_listed_and_watched() {
    let server = ApiServer::start();
    for number in 0..150 {
        server.put(PODS, pod(&format!("web-{number:03}"), json!({})));
    }
    let mut other = pod("other", json!({}));
    other["spec"]["nodeName"] = "node-2".into();
    server.put(PODS, other);
    let scene = Scene::start(server).await;
    until(|| scene.names().len() == 150, || format!("{:?}", scene.state())).await;
    for number in 2..150 {
        scene.server.remove(&format!("{PODS}/web-{number:03}"));
    }
    scene.knows(&["web-000", "web-001"]).await;
    scene.server.put(PODS, pod("web-001", json!({"labels": {"app": "changed"}})));
    let label = || {
        let attachments = scene.node.journal.attachments();
        attachments.pods().get("uid-web-001").unwrap().labels["app"].clone()
    };
    until(|| label() == "changed", label).await;
    assert_eq!(scene.requests("list", "pods"), 1);
    let path = &scene.server.requests()[0].path;
    assert!(path.contains("fieldSelector=spec.nodeName%3Dnode-1"), "{path}");
}

#[tokio::test]
async fn a_dropped_watch_continues_and_an_old_version_is_listed_anew() {
    let server = ApiServer::start();
    server.put(PODS, pod("a", json!({})));
    server.put(PODS, pod("b", json!({})));
    let scene = Scene::start(server).await;
    scene.knows(&["a", "b"]).await;
    scene.server.fault(Fault::DropWatches);
    scene.server.remove(&format!("{PODS}/a"));
    scene.server.put(PODS, pod("c", json!({})));
    scene.knows(&["b", "c"]).await;
    assert_eq!(scene.requests("list", "pods"), 1, "the watch continues");
    // The watch does not report this deletion.
    scene.server.fault(Fault::Freeze);
    scene.server.remove(&format!("{PODS}/b"));
    scene.server.fault(Fault::Compact);
    scene.server.fault(Fault::Thaw);
    scene.knows(&["c"]).await;
    // The version may have expired, so the second list comes from the store and not from a cache.
    let lists: Vec<_> = scene.server.requests().into_iter().filter(|one| one.verb == "list").collect();
    assert_eq!(lists.len(), 2, "{lists:?}");
    assert!(lists[0].path.contains("resourceVersion=0") && !lists[1].path.contains("resourceVersion"));
}

#[tokio::test]
async fn a_list_without_a_pod_forgets_it_only_without_an_attachment() {
    let (dir, server) = (tempfile::tempdir().unwrap(), ApiServer::start());
    let node = node(dir.path(), &server).await;
    let put = ["a", "b"].map(|name| read(pod(name, json!({})))).to_vec();
    node.journal.write(Record::Pods { put, gone: Vec::new() }).await.unwrap();
    let entry = Entry {
        key: key(),
        phase: Phase::Attached,
        boot_id: "b1".to_owned(),
        runtime: String::new(),
        netns: None,
        endpoint: None,
        uid: Some("uid-a".to_owned()),
        allocations: vec![7],
    };
    node.journal.write(Record::Put(entry)).await.unwrap();
    let tasks = run(&node);
    let view = node.pods.as_ref().unwrap();
    until(|| view.state().listed.is_some(), || format!("{:?}", view.state())).await;
    let known = |uid| node.journal.attachments().pods().get(uid).is_some();
    assert_eq!((known("uid-a"), known("uid-b")), (true, false));
    assert_eq!(node.journal.attachments().len(), 1);
    tasks.abort();
}

#[tokio::test]
async fn a_restarted_agent_knows_its_pods_without_the_api_server() {
    let mut server = ApiServer::start();
    let owner = json!({"metadata": {"name": "db", "uid": "s1"}, "spec": {"replicas": 3}});
    server.put("/apis/apps/v1/namespaces/shop/statefulsets", owner);
    server.put(PODS, owned("db-0", "apps/v1", "StatefulSet", "db", "s1"));
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), &server).await;
    let tasks = run(&first);
    let application = |node: &Node| {
        let attachments = node.journal.attachments();
        attachments.pods().get("uid-db-0").and_then(|pod| pod.application.clone())
    };
    until(|| application(&first).is_some(), || format!("{:?}", first.pods.as_ref().unwrap().state())).await;
    server.stop();
    tasks.abort();
    let _ = tasks.await;
    let journal = std::fs::read_to_string(dir.path().join("state/journal")).unwrap();
    drop(first);
    until(|| crate::journal::JournalFile::open(&dir.path().join("state")).is_ok(), String::new).await;
    let second = node(dir.path(), &server).await;
    let tasks = run(&second);
    let known = application(&second).expect(&journal);
    assert_eq!((known.controller.kind.as_str(), known.replicas), ("StatefulSet", Some(3)));
    let view = second.pods.as_ref().unwrap();
    let found = view.find(&second.journal, &wanted("db-0", Some("uid-db-0")), WAIT).await.unwrap();
    assert_eq!(found.labels["app"], "db-0");
    until(|| view.state().error.is_some(), || format!("{:?}", view.state())).await;
    assert!(application(&second).is_some(), "an error of the API server forgets nothing");
    tasks.abort();
}

#[tokio::test]
async fn a_pod_that_the_watch_lacks_is_read() {
    let scene = Scene::start(ApiServer::start()).await;
    until(|| scene.state().listed.is_some(), || format!("{:?}", scene.state())).await;
    scene.server.fault(Fault::Freeze);
    scene.server.put(PODS, pod("web", json!({})));
    assert_eq!(scene.find("web", Some("uid-web")).await.unwrap().uid, "uid-web");
    assert_eq!(scene.names(), ["web"], "it is known from now on");
    assert_eq!(scene.requests("get", "pods"), 1);
    scene.find("web", None).await.unwrap();
    assert_eq!(scene.requests("get", "pods"), 1);
    // Another incarnation is another pod.
    let why = scene.find("web", Some("uid-old")).await.unwrap_err();
    assert!(why.contains("another pod of this name, uid-web"), "{why}");
    assert!(scene.find("none", None).await.unwrap_err().contains("no such pod"));
    // The new incarnation replaces the old one, even while the watch is silent.
    scene.server.put(PODS, pod("web", json!({"uid": "uid-new"})));
    assert_eq!(scene.find("web", Some("uid-new")).await.unwrap().uid, "uid-new");
}

#[tokio::test]
async fn a_static_pod_has_the_uid_of_its_kubelet() {
    let server = ApiServer::start();
    let annotations = json!({"kubernetes.io/config.mirror": "h1", "kubernetes.io/config.hash": "h1"});
    server.put(PODS, pod("etcd", json!({"annotations": annotations})));
    let scene = Scene::start(server).await;
    scene.knows(&["etcd"]).await;
    assert_eq!(scene.find("etcd", Some("h1")).await.unwrap().uid, "uid-etcd");
}

#[tokio::test]
async fn applications_are_the_controllers_of_controllers() {
    let server = ApiServer::start();
    let apps = |plural: &str| format!("/apis/apps/v1/namespaces/shop/{plural}");
    let owner = |name: &str, uid: &str, spec: Value, owner: Value| {
        let metadata = json!({"name": name, "uid": uid, "ownerReferences": [owner]});
        json!({"metadata": metadata, "spec": spec})
    };
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d1", "controller": true,
    });
    server.put(&apps("replicasets"), owner("web-1", "r1", json!({"replicas": 1}), deployment));
    server.put(&apps("deployments"), owner("web", "d1", json!({"replicas": 4}), json!({})));
    let rollout = json!({
        "apiVersion": "argoproj.io/v1", "kind": "Rollout", "name": "ro", "uid": "o1", "controller": true,
    });
    server.put(&apps("replicasets"), owner("ro-1", "r2", json!({"replicas": 2}), rollout));
    let mut daemon = owner("log", "ds1", json!({}), json!({}));
    daemon["status"] = json!({"desiredNumberScheduled": 7});
    server.put(&apps("daemonsets"), daemon);
    let cron =
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "tidy", "uid": "c1", "controller": true});
    server.put("/apis/batch/v1/namespaces/shop/jobs", owner("tidy-1", "j1", json!({"parallelism": 2}), cron));
    for (name, api_version, kind, owner, uid) in [
        ("a", "apps/v1", "ReplicaSet", "web-1", "r1"),
        ("b", "apps/v1", "ReplicaSet", "ro-1", "r2"),
        ("c", "apps/v1", "DaemonSet", "log", "ds1"),
        ("d", "batch/v1", "Job", "tidy-1", "j1"),
        ("e", "kubevirt.io/v1", "VirtualMachineInstance", "mail", "v1"),
        ("f", "example.com/v1", "Database", "pg", "x1"),
        // Another incarnation than that of the pod.
        ("g", "apps/v1", "ReplicaSet", "web-1", "r0"),
        ("h", "apps/v1", "StatefulSet", "gone", "s1"),
        // The uid of another object, which has been read.
        ("j", "apps/v1", "ReplicaSet", "forged", "r1"),
    ] {
        server.put(PODS, owned(name, api_version, kind, owner, uid));
    }
    server.put(PODS, pod("i", json!({})));
    let scene = Scene::start(server).await;
    scene.knows(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).await;
    for (name, expected) in [
        ("a", "apps/Deployment/web d1 Some(4)"),
        ("b", "argoproj.io/Rollout/ro o1 Some(2)"),
        ("c", "apps/DaemonSet/log ds1 Some(7)"),
        ("d", "batch/CronJob/tidy c1 Some(2)"),
        ("e", "kubevirt.io/VirtualMachineInstance/mail v1 None"),
        ("f", "example.com/Database/pg x1 None"),
        ("g", "none"),
        ("h", "apps/StatefulSet/gone s1 None"),
        ("i", "none"),
        ("j", "none"),
    ] {
        let found = scene.find(name, None).await.unwrap().application.map_or("none".to_owned(), |one| {
            let (own, replicas) = (one.controller, one.replicas);
            let uid = own.uid.unwrap_or_default();
            format!("{}/{}/{} {uid} {replicas:?}", own.group, own.kind, own.name)
        });
        assert_eq!(found, expected, "{name}");
    }
    let kinds: Vec<String> = scene.server.requests().into_iter().map(|one| one.resource).collect();
    assert!(!kinds.contains(&"cronjobs".to_owned()), "not permitted, and not needed: {kinds:?}");
}

#[tokio::test]
async fn many_pods_of_one_owner_read_it_once() {
    let server = ApiServer::start();
    let set = json!({"metadata": {"name": "db", "uid": "s1"}, "spec": {"replicas": 100}});
    server.put("/apis/apps/v1/namespaces/shop/statefulsets", set);
    for number in 0..100 {
        server.put(PODS, owned(&format!("db-{number}"), "apps/v1", "StatefulSet", "db", "s1"));
    }
    let scene = Scene::start(server).await;
    let resolved = || {
        let attachments = scene.node.journal.attachments();
        attachments.pods().iter().filter(|pod| pod.application.is_some()).count()
    };
    until(|| resolved() == 100, || resolved().to_string()).await;
    let reads = scene.requests("get", "statefulsets");
    assert!(reads <= 2, "{reads}");
}

#[tokio::test]
async fn hostile_answers_are_bounded_and_end() {
    let server = ApiServer::start();
    server.put(PODS, pod("web", json!({})));
    let scene = Scene::start(server).await;
    scene.knows(&["web"]).await;
    let huge = json!({"items": [], "metadata": {"resourceVersion": "x".repeat(100_000)}}).to_string();
    for (hostility, expected) in [
        (Hostility::Endless(vec![b' '; 1 << 16]), "more than 4194304 bytes"),
        (Hostility::Bytes(b"<html>".to_vec()), "can't be read"),
        (Hostility::Bytes(huge.into_bytes()), "can't be read"),
    ] {
        scene.server.fault(Fault::Hostile(hostility));
        scene.server.fault(Fault::DropWatches);
        let has_failed = || scene.state().error.is_some_and(|error| error.contains(expected));
        until(has_failed, || format!("{expected}: {:?}", scene.state())).await;
        assert!(scene.find("none", None).await.is_err());
        assert_eq!(scene.names(), ["web"]);
    }
    scene.server.fault(Fault::Heal);
    scene.server.put(PODS, pod("late", json!({})));
    scene.knows(&["late", "web"]).await;
}

#[tokio::test]
async fn a_refused_watch_is_asked_ever_less_often() {
    let server = ApiServer::start();
    server.fault(Fault::Forbid { verb: "watch", plural: "pods" });
    server.put(PODS, pod("web", json!({})));
    let scene = Scene::start(server).await;
    until(|| scene.requests("watch", "pods") >= 4, || format!("{:?}", scene.server.requests())).await;
    assert!(scene.state().error.unwrap().contains("403 Forbidden: cannot watch resource pods"));
    assert_eq!(scene.names(), ["web"], "the list is used all the same");
}

#[tokio::test]
async fn a_failed_add_becomes_one_event_with_code_and_remedy() {
    let scene = Scene::start(ApiServer::start()).await;
    scene.server.put("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    let view = scene.node.pods.as_ref().unwrap();
    let uid = Some("u1".to_owned());
    let subject = Subject { namespace: "shop".parse().unwrap(), name: "web".parse().unwrap(), uid };
    let problem = Problem::new(Code::PoolExhausted, "no address is free in pool web");
    for _ in 0..5 {
        view.report(&subject, &problem);
    }
    let events = || scene.server.list("/api/v1/namespaces/shop/events");
    until(|| !events().is_empty(), || format!("{:?}", scene.state())).await;
    // Another code causes another event. By then, the first events were sent.
    view.report(&subject, &Problem::new(Code::NoPoolFits, "x"));
    until(|| events().len() > 1, || format!("{:?}", scene.state())).await;
    let events = events();
    let first = events.iter().find(|event| event["reason"] == "PoolExhausted").unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(
        (first["type"].as_str(), first["involvedObject"]["uid"].as_str()),
        (Some("Warning"), Some("u1"))
    );
    assert_eq!(first["involvedObject"]["name"], "web");
    assert_eq!(first["source"], json!({"component": "ipam-agent", "host": "node-1"}));
    let message = first["message"].as_str().unwrap();
    assert!(message.starts_with("pool-exhausted: no address is free in pool web. "), "{message}");
    assert!(message.ends_with(Code::PoolExhausted.entry().help), "{message}");
}

#[tokio::test]
async fn events_never_wait_and_are_bounded() {
    // The tasks of this view don't run, so nothing is sent.
    let dir = tempfile::tempdir().unwrap();
    let server = ApiServer::start();
    server.put("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    let node = node(dir.path(), &server).await;
    let view = node.pods.as_ref().unwrap();
    let began = Instant::now();
    for number in 0..10 * POD_EVENTS_WAITING_MAX {
        let uid = Some(number.to_string());
        let subject = Subject { namespace: "shop".parse().unwrap(), name: "web".parse().unwrap(), uid };
        view.report(&subject, &Problem::new(Code::PoolExhausted, "x"));
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    let tasks = run(&node);
    let events = || server.list("/api/v1/namespaces/shop/events").len();
    until(|| events() == POD_EVENTS_WAITING_MAX, || events().to_string()).await;
    tasks.abort();
}

#[test]
fn labels_that_no_request_can_carry_are_left_out() {
    let mut labels = json!({"a": "1", "bad key": "x", "z": "é", "long": "x".repeat(300)});
    let pod_of = |labels: &Value| read(pod("web", json!({"labels": labels})));
    assert_eq!(pod_of(&labels).labels.into_iter().collect::<Vec<_>>(), [("a".to_owned(), "1".to_owned())]);
    for number in 0..200 {
        labels[format!("m{number:03}")] = "x".into();
    }
    let kept: Vec<String> = pod_of(&labels).labels.into_keys().collect();
    assert_eq!((kept.len(), kept[0].as_str(), kept[63].as_str()), (LABELS_MAX, "a", "m062"));
    for value in [json!(null), json!({})] {
        assert!(pod_of(&value).labels.is_empty());
    }
}

fn filled(body: Value, pod: Value) -> Value {
    let mut body: Map<String, Value> = serde_json::from_value(body).unwrap();
    fill(&mut body, &read(pod));
    body.into()
}

fn body(more: Value) -> Value {
    let mut body = json!({
        "endpoint": {"realm": "default", "kind": "pod", "namespace": "shop", "name": "web"},
        "interfaces": [{"name": "eth0"}, {"name": "net1", "network_attachment": "x/y"}, {"name": "net2"}],
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn the_facts_of_the_request_precede_those_of_the_pod() {
    let mut labelled = owned("web", "example.com/v1", "Database", "pg", "x1");
    labelled["metadata"]["labels"] = json!({"app": "pod", "tier": "db"});
    labelled["metadata"]["annotations"] = json!({"k8s.v1.cni.cncf.io/networks": "lan,kube-system/wan"});
    let found = filled(body(json!({"labels": {"app": "own"}})), labelled.clone());
    assert_eq!(found["labels"], json!({"app": "own", "tier": "db"}));
    assert_eq!(
        found["controller"],
        json!({"group": "example.com", "kind": "Database", "name": "pg", "uid": "x1"})
    );
    let attachments: Vec<&Value> =
        found["interfaces"].as_array().unwrap().iter().map(|one| &one["network_attachment"]).collect();
    assert_eq!(attachments, [&Value::Null, &json!("x/y"), &json!("kube-system/wan")]);
    let own = json!({"kind": "StatefulSet", "group": "apps", "name": "own"});
    assert_eq!(filled(body(json!({"controller": own})), labelled)["controller"], own);
    let many: Map<String, Value> = (0..64).map(|number| (format!("l{number}"), "x".into())).collect();
    let full = filled(body(json!({"labels": many})), pod("web", json!({})));
    assert_eq!(full["labels"].as_object().unwrap().len(), LABELS_MAX);
}

#[test]
fn a_launcher_pod_stands_for_its_machine() {
    let launcher = owned("virt-launcher-mail-x", "kubevirt.io/v1", "VirtualMachineInstance", "mail", "v1");
    let found = filled(body(json!({})), launcher.clone());
    assert_eq!((&found["endpoint"]["kind"], &found["endpoint"]["name"]), (&json!("vm"), &json!("mail")));
    assert_eq!(found["controller"]["kind"], "VirtualMachineInstance");
    // If the plugin specified a controller, only that controller counts.
    let told = json!({"controller": {"kind": "Other", "name": "x"}});
    assert_eq!(filled(body(told), launcher)["endpoint"]["kind"], "pod");
    // The same kind of another group is no machine.
    let other = owned("x", "example.com/v1", "VirtualMachineInstance", "mail", "v1");
    assert_eq!(filled(body(json!({})), other)["endpoint"]["kind"], "pod");
}

#[test]
fn only_a_request_that_names_its_pools_can_be_allowed() {
    let pools = |interfaces: Value, annotations: Value| {
        let body = json!({"interfaces": interfaces, "annotations": annotations});
        is_allowed(body.as_object().unwrap())
    };
    let none = || json!({});
    assert!(!pools(json!([{"name": "eth0"}]), none()));
    assert!(!pools(json!([]), none()));
    assert!(!pools(json!([{"name": "eth0", "ipv4_pools": []}]), none()));
    for field in ["subnets", "ipv4_pools", "ipv6_pools", "default_ipv4_pools", "default_ipv6_pools"] {
        assert!(pools(json!([{"name": "eth0", field: ["web"]}]), none()), "{field}");
    }
    assert!(!pools(json!([{"name": "eth0", "ipv4_pools": ["web"]}, {"name": "net1"}]), none()));
    assert!(pools(json!([{"name": "eth0"}]), json!({"ipam.spidernet.io/ippool": "{}"})));
    assert!(!pools(json!([{"name": "eth0"}]), json!({"ipam.spidernet.io/routes": "[]"})));
}

#[tokio::test]
async fn missing_permissions_are_in_the_state() {
    let server = ApiServer::start();
    server.fault(Fault::Forbid { verb: "get", plural: "statefulsets" });
    server.fault(Fault::Forbid { verb: "create", plural: "events" });
    server.put(PODS, owned("db-0", "apps/v1", "StatefulSet", "db", "s1"));
    let scene = Scene::start(server).await;
    let owner_error = || scene.state().owner_error.unwrap_or_default();
    until(|| owner_error().contains("cannot get resource statefulsets"), owner_error).await;
    // The pod is sticky by its own reference.
    let found = scene.find("db-0", None).await.unwrap();
    let mut request = serde_json::from_value(body(json!({}))).unwrap();
    fill(&mut request, &found);
    assert_eq!(request["controller"]["kind"], "StatefulSet");
    let subject = Subject { namespace: found.namespace, name: found.name, uid: Some(found.uid) };
    scene.node.pods.as_ref().unwrap().report(&subject, &Problem::new(Code::NoPoolFits, "x"));
    let event_error = || scene.state().event_error.unwrap_or_default();
    until(|| event_error().contains("cannot create resource events"), event_error).await;
}
