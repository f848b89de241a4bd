//! Custom resources of the deployment with kubectl, applied by real members.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ipam_api::Code;
use ipam_api::client::Call;
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::scene::{Scene, add, del};
use crate::support::ask::{get, refused};
use crate::support::{LONG, until};

const SETTING: &str = "custom_resources = true\n";
const GROUP: &str = "/apis/ipamd.internal/v1";

const OBJECTS: &str = "
apiVersion: ipamd.internal/v1
kind: Pool
metadata: {name: shop}
spec: {subnet: lan, ranges: [10.7.0.10-10.7.0.19], cooling_ms: 0}
---
apiVersion: ipamd.internal/v1
kind: Subnet
metadata: {name: lan}
spec: {cidr: 10.7.0.0/24, gateway: 10.7.0.1}
---
apiVersion: ipamd.internal/v1
kind: Reservation
metadata: {name: printers}
spec: {addresses: [10.7.0.19]}
";

/// Runs Debian's kubectl with a text as its input.
fn run(api: &ApiServer, home: &Path, words: &[&str], input: &str) -> Output {
    let mut command = Command::new(ipam_manifests::kubectl());
    command.args(words).arg("--server").arg(api.url()).arg("--cache-dir").arg(home).env("HOME", home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("first: cargo xtask test --only packages");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

impl Scene {
    /// Members that apply custom resources, whose definitions are installed.
    pub(super) async fn custom(members: usize) -> Self {
        let scene = Self::start_with(members, SETTING).await;
        let folder = ipam_manifests::folder().join("custom-resources");
        scene.kubectl(&["apply", "-k", folder.to_str().unwrap()], "");
        for plural in ["hostpolicies", "nodeippools", "pools", "reservations", "subnets"] {
            let definition = format!("crd/{plural}.ipamd.internal");
            scene.kubectl(&["wait", "--for=condition=Established", &definition, "--timeout=4m"], "");
        }
        scene
    }

    /// Output of a command that succeeds.
    pub(super) fn kubectl(&self, words: &[&str], input: &str) -> String {
        let output = run(&self.api, self.cluster.dir.path(), words, input);
        assert!(output.status.success(), "kubectl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Error of a command that fails.
    fn kubectl_error(&self, words: &[&str], input: &str) -> String {
        let output = run(&self.api, self.cluster.dir.path(), words, input);
        assert!(!output.status.success(), "kubectl {words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn wait_for_ready(&self, object: &str) {
        self.kubectl(&["wait", "--for=condition=Ready", object, "--timeout=4m"], "");
    }

    /// Waits until an object shows a value in its status.
    pub(super) async fn shows(&self, object: &str, pointer: &str, value: Value) {
        until(&format!("{object} shows {value}"), async || {
            let status = self.api.get(&format!("{GROUP}/{object}")).map(|found| found["status"].clone());
            match status.as_ref().and_then(|status| status.pointer(pointer)) == Some(&value) {
                true => Ok(()),
                false => Err(format!("{status:?}; {:?}", self.status("default").await)),
            }
        })
        .await;
    }

    async fn is_gone(&self, path: &str) {
        until(&format!("{path} is gone"), async || match get::<Value>(&self.ask(), path).await {
            Err(problem) if problem.code == Code::NotFound => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }

    fn patches(&self) -> usize {
        self.api
            .requests()
            .iter()
            .filter(|one| one.verb == "patch" && one.resource.contains("/status"))
            .count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_applied_shown_and_ended() {
    let scene = Scene::custom(3).await;
    scene.synced().await;
    scene.kubectl(&["apply", "-f", "-"], OBJECTS);
    for object in ["subnets.ipamd.internal/lan", "pools.ipamd.internal/shop", "ipdr/printers"] {
        scene.wait_for_ready(object);
    }
    scene.shows("pools/shop", "/counts/free", json!(9)).await;
    let shown = scene.kubectl(&["get", "ipdp"], "");
    let words: Vec<&str> = shown.split_whitespace().collect();
    let titles = ["NAME", "READY", "REASON", "SUBNET", "HELD", "FREE", "AGE"];
    assert_eq!(words[..7], titles);
    assert_eq!(words[7..13], ["shop", "True", "Serving", "lan", "0", "9"]);
    let pool: Value = get(&scene.ask(), "/v1/pools/shop").await.unwrap();
    assert_eq!(pool["managed_by"], "kubernetes/default");
    // What is applied once is not written again.
    scene.scans(3).await;
    let same: Value = get(&scene.ask(), "/v1/pools/shop").await.unwrap();
    assert_eq!(same["meta"], pool["meta"]);
    let uid = scene.pod("web-1", "n1", json!({}));
    let interface = json!({"interfaces": [{"name": "eth0", "ipv4_pools": ["shop"]}]});
    add(&scene.ask(), "default", ("web-1", "n1", &uid), interface).await.unwrap();
    scene.shows("pools/shop", "/counts/allocated", json!(1)).await;
    scene.kubectl(&["delete", "-f", "-", "--wait=false"], OBJECTS);
    until("the pool ends", async || {
        let pool: Value = get(&scene.ask(), "/v1/pools/shop").await.map_err(|problem| problem.detail)?;
        if pool["terminating"] == true { Ok(()) } else { Err(pool.to_string()) }
    })
    .await;
    scene.is_gone("/v1/reservations/printers").await;
    assert_eq!(scene.held().await.len(), 1, "it keeps its address");
    del(&scene, "n1", &uid).await;
    scene.is_gone("/v1/pools/shop").await;
    scene.is_gone("/v1/subnets/lan").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_of_custom_resources_are_conditions() {
    let scene = Scene::custom(1).await;
    scene.synced().await;
    let pool = |name: &str, subnet: &str, range: &str| {
        json!({
            "apiVersion": "ipamd.internal/v1", "kind": "Pool", "metadata": {"name": name},
            "spec": {"subnet": subnet, "ranges": [range]},
        })
        .to_string()
    };
    let apply = ["apply", "-f", "-"];
    scene.kubectl(&apply, &pool("lost", "nowhere", "10.9.0.1"));
    scene.shows("pools/lost", "/conditions/0/reason", json!("NotFound")).await;
    // A pool without a manager, and one that overlaps it.
    scene.kubectl(&apply, &pool("web", "web", "10.1.0.1"));
    scene.shows("pools/web", "/conditions/0/reason", json!("ManagedElsewhere")).await;
    scene.kubectl(&apply, &pool("rest", "web", "10.1.0.1"));
    scene.shows("pools/rest", "/conditions/0/reason", json!("Overlap")).await;
    scene.kubectl(&apply, &pool("odd", "web", "10.1.0.9-10.1.0.1"));
    scene.shows("pools/odd", "/conditions/0/reason", json!("RangeReversed")).await;
    scene.kubectl(&["delete", "ipdp", "web"], "");
    scene.scans(3).await;
    let foreign: Value = get(&scene.ask(), "/v1/pools/web").await.unwrap();
    assert_eq!((&foreign["terminating"], &foreign["managed_by"]), (&json!(false), &Value::Null));
    // The subnet comes later, and the pool is tried again.
    let subnet = json!({
        "apiVersion": "ipamd.internal/v1", "kind": "Subnet", "metadata": {"name": "nowhere"},
        "spec": {"cidr": "10.9.0.0/24"},
    });
    scene.kubectl(&apply, &subnet.to_string());
    scene.wait_for_ready("ipdp/lost");
    let error = scene.kubectl_error(&apply, &pool("lost", "web", "10.9.0.1"));
    assert!(error.contains("spec.subnet can't be changed"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_continues_with_custom_resources() {
    let mut scene = Scene::custom(3).await;
    scene.synced().await;
    scene.kubectl(&["apply", "-f", "-"], OBJECTS);
    scene.wait_for_ready("ipdp/shop");
    scene.wait_for_ready("ipds/lan");
    scene.wait_for_ready("ipdr/printers");
    // The counts follow the reservation, and those of the subnet its pool.
    scene.shows("pools/shop", "/counts/free", json!(9)).await;
    scene.shows("subnets/lan", "/pools", json!(1)).await;
    scene.shows("subnets/lan", "/counts/free", json!(9)).await;
    let patches = scene.patches();
    let leader = scene.cluster.leader().await;
    scene.cluster.members[leader].kill();
    scene.synced().await;
    scene.scans(3).await;
    assert_eq!(scene.patches(), patches, "nothing differs");
    scene.kubectl(&["apply", "-f", "-"], &OBJECTS.replace("10.7.0.10-", "10.7.0.5-"));
    scene.shows("pools/shop", "/counts/free", json!(14)).await;
    scene.kubectl(&["delete", "ipdp", "shop"], "");
    scene.is_gone("/v1/pools/shop").await;
    scene.cluster.start(leader);
    scene.cluster.ready().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_setting_the_watcher_may_not_change_pools() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    scene.kubectl(&["apply", "-k", ipam_manifests::folder().join("custom-resources").to_str().unwrap()], "");
    scene.kubectl(&["apply", "-f", "-"], OBJECTS);
    scene.scans(2).await;
    let pool = scene.ask().send(Call::get("/v1/pools/shop").within(LONG)).await;
    refused(pool, Code::NotFound);
    assert!(!scene.api.requests().iter().any(|one| one.group == "ipamd.internal" && one.verb == "watch"));
}
