//! `ipamd kubernetes`: the watcher in a process of its own, with a token of its realm.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::resource::Allocation;
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::scene::{add, kubeconfig, node, pod, request};
use crate::cluster::access::{guarded, make, root, with};
use crate::support::ask::{allocations, get, subnet_with_pool};
use crate::support::{Cluster, programs, until};

/// Pods of the test of the watcher's costs. 50,000 by hand: `IPAMD_TEST_PODS=50000`.
const PODS: usize = 2_000;
/// Lists, watches, discoveries and reads, however many pods there are.
const REQUESTS_MAX: usize = 200;
/// Pods in a page of a list.
const PAGE: usize = 500;

/// The watcher's process; it ends with this.
struct Watcher(Child);

impl Watcher {
    fn start(cluster: &Cluster, realm: &str, api: &ApiServer, token: &str) -> Self {
        Self::start_with(cluster, realm, api, token, &[])
    }

    fn start_with(cluster: &Cluster, realm: &str, api: &ApiServer, token: &str, flags: &[&str]) -> Self {
        let dir = cluster.dir.path();
        let token_file = dir.join(format!("token-{realm}"));
        std::fs::write(&token_file, token).unwrap();
        let mut command = Command::new(programs::ipamd());
        command.arg("kubernetes").args(flags).args([
            "--realm",
            realm,
            "--scan-interval-ms",
            "1000",
            "--token-file",
        ]);
        command.arg(&token_file).arg("--kubeconfig").arg(kubeconfig(realm, api, dir)).env_clear();
        for url in cluster.urls() {
            command.args(["--server", &url]);
        }
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().split(' ').next().unwrap().parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn realm_token(root: &Client, realm: &str) -> String {
    make(root, json!({"name": realm, "role": "operator", "realms": [realm]})).await.secret.unwrap()
}

async fn of_realm(root: &Client, realm: &str) -> Vec<Allocation> {
    allocations(root).await.into_iter().filter(|one| one.endpoint.realm.as_str() == realm).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_elsewhere_reports_with_a_token_of_its_realm() {
    let cluster = guarded(3).await;
    let root = root(&cluster);
    subnet_with_pool(&root, "web", "10.1.0.0/16", json!({"default": true, "cooling_ms": 0})).await;
    let api = ApiServer::start();
    node(&api, "n1", json!({"zone": "a"}), true);
    let _watcher = Watcher::start(&cluster, "us", &api, &realm_token(&root, "us").await);
    until("the node is mirrored", async || {
        let node: Value = get(&root, "/v1/nodes/us/n1").await.map_err(|problem| problem.detail)?;
        if node["labels"]["zone"] == "a" { Ok(()) } else { Err(node.to_string()) }
    })
    .await;
    for name in ["web-1", "web-2"] {
        let uid = pod(&api, name, "n1", json!({}));
        add(&root, "us", (name, "n1", &uid), json!({})).await.unwrap();
    }
    let secret = json!({"name": "us-n1", "role": "node", "node": {"realm": "us", "name": "n1"}});
    let secret = make(&root, secret).await.secret.unwrap();
    let stolen = request("us", ("web-1", "n1", "u-other"), json!({}));
    until("claims of the realm are verified", async || {
        let call = Call::post("/v1/allocations").query("dry_run", "true").json(&stolen).unwrap();
        // Without `within` it would be repeated until the report comes.
        let call = with(call, &secret).within(Duration::from_millis(500));
        match cluster.ask().send(call).await {
            Err(problem) if problem.code == Code::PodUnreported => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // A pod of another realm with the same name.
    add(&root, "eu", ("web-1", "n1", "other"), json!({})).await.unwrap();
    assert!(api.remove("/api/v1/namespaces/shop/pods/web-1"));
    until("the pod has no address", async || match of_realm(&root, "us").await.as_slice() {
        [left] if left.endpoint.name.as_str() == "web-2" => Ok(()),
        held => Err(format!("{held:?}")),
    })
    .await;
    assert_eq!(of_realm(&root, "eu").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_elsewhere_needs_a_token_for_shared_resources_to_apply_custom_ones() {
    let cluster = guarded(1).await;
    let root = root(&cluster);
    let api = ApiServer::start();
    for object in ipam_manifests::render(&ipam_manifests::folder().join("custom-resources")).unwrap() {
        if object["kind"] == "CustomResourceDefinition" {
            api.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object);
        }
    }
    let subnet = json!({"metadata": {"name": "lan"}, "spec": {"cidr": "10.7.0.0/24"}});
    api.put("/apis/ipamd.internal/v1/subnets", subnet);
    let shared = json!({"name": "shared", "role": "operator", "realms": ["us"], "allow_shared": true});
    let shared = make(&root, shared).await.secret.unwrap();
    for (token, reason) in [(realm_token(&root, "us").await, "Forbidden"), (shared, "Applied")] {
        let _watcher = Watcher::start_with(&cluster, "us", &api, &token, &["--custom-resources"]);
        until(reason, async || {
            let status = api.get("/apis/ipamd.internal/v1/subnets/lan").unwrap()["status"].clone();
            if status["conditions"][0]["reason"] == reason { Ok(()) } else { Err(status.to_string()) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_17_the_requests_of_a_watcher_do_not_grow_with_the_pods() {
    let pods = std::env::var("IPAMD_TEST_PODS").map_or(PODS, |text| text.parse().unwrap());
    let cluster = guarded(1).await;
    let root = root(&cluster);
    let api = ApiServer::start();
    node(&api, "n1", json!({}), true);
    for number in 0..pods {
        let labels =
            json!({"labels": {"app": format!("app-{}", number % 100), "pod-template-hash": "5d8b34aa62"}});
        pod(&api, &format!("app-{}-5d8b34aa62-{number}", number % 100), "n1", labels);
    }
    let watcher = Watcher::start(&cluster, "us", &api, &realm_token(&root, "us").await);
    let pages = pods.div_ceil(PAGE);
    until("all pods are listed, and watched", async || {
        let requests = api.requests();
        let watched = requests.iter().any(|one| (one.verb, &*one.resource) == ("watch", "pods"));
        if watched { Ok(()) } else { Err(format!("{} requests", requests.len())) }
    })
    .await;
    until("the mirror is complete", async || {
        let node: Result<Value, _> = get(&root, "/v1/nodes/us/n1").await;
        node.map(drop).map_err(|problem| problem.detail)
    })
    .await;
    let requests = api.requests();
    println!(
        "h6_17: {pods} pods: {} requests, {} of them pages of pods; resident memory {:.1} MiB",
        requests.len(),
        requests.iter().filter(|one| (one.verb, &*one.resource) == ("list", "pods")).count(),
        watcher.resident_mib(),
    );
    assert!(requests.len() <= pages + REQUESTS_MAX, "{} requests", requests.len());
    assert!(!requests.iter().any(|one| (one.verb, &*one.resource) == ("get", "pods")));
}
