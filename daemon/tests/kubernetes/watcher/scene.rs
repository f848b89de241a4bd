//! Members with the section `[[kubernetes]]`, and an API server with nodes and pods.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ipam_api::Problem;
use ipam_api::client::{Call, Client};
use ipam_api::reclaim::{Task, Tasks};
use ipam_api::request::Allocated;
use ipam_api::resource::Allocation;
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use crate::support::ask::{allocations, get, subnet_with_pool};
use crate::support::{Cluster, LONG, until};

/// Interval of scans.
const SCAN_MS: u64 = 1_000;
const TIMING: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\nlease_grace_ms = 500";

pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) api: ApiServer,
}

/// Section for the cluster of an API server.
pub(super) fn section(realm: &str, api: &ApiServer, dir: &Path) -> String {
    let file = kubeconfig(realm, api, dir);
    format!("[[kubernetes]]\nrealm = {realm:?}\nkubeconfig = {file:?}\nscan_interval_ms = {SCAN_MS}\n")
}

/// Writes the kubeconfig of an API server.
pub(in crate::kubernetes) fn kubeconfig(realm: &str, api: &ApiServer, dir: &Path) -> PathBuf {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": api.url()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    });
    let file = dir.join(format!("kubeconfig-{realm}"));
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    file
}

impl Scene {
    /// Members that watch the realm `default`, a pool for all, and a node.
    pub(super) async fn start(members: usize) -> Self {
        Self::start_with(members, "").await
    }

    /// The same with further settings of the watcher.
    pub(super) async fn start_with(members: usize, settings: &str) -> Self {
        let api = ApiServer::start();
        let cluster = Cluster::of(members);
        let watched = section("default", &api, cluster.dir.path());
        std::fs::write(cluster.config(), format!("log = \"info\"\n{watched}{settings}\n[raft]\n{TIMING}\n"))
            .unwrap();
        let cluster = cluster.all_up().await;
        subnet_with_pool(&cluster.ask(), "web", "10.1.0.0/16", json!({"default": true, "cooling_ms": 0}))
            .await;
        let scene = Self { cluster, api };
        scene.node("n1", json!({}), true);
        scene
    }

    pub(super) fn ask(&self) -> Client {
        self.cluster.ask()
    }

    /// Creates or replaces a node.
    pub(super) fn node(&self, name: &str, labels: Value, is_ready: bool) -> Value {
        node(&self.api, name, labels, is_ready)
    }

    /// Creates a pod that runs on a node; returns its uid.
    pub(super) fn pod(&self, name: &str, node: &str, more: Value) -> String {
        pod(&self.api, name, node, more)
    }

    pub(super) fn delete_pod(&self, name: &str) {
        assert!(self.api.remove(&format!("/api/v1/namespaces/shop/pods/{name}")), "{name}");
    }

    /// Creates a pod and its attachment.
    pub(super) async fn attached(&self, name: &str, node: &str, metadata: Value, fields: Value) -> String {
        let uid = self.pod(name, node, metadata);
        add(&self.ask(), "default", (name, node, &uid), fields).await.unwrap();
        uid
    }

    /// Status of the watcher of a realm, from the member that leads.
    pub(super) async fn status(&self, realm: &str) -> Result<Task, String> {
        let leader = self.cluster.leader().await;
        let tasks: Tasks =
            get(&self.cluster.at(leader), "/v1/tasks").await.map_err(|error| error.to_string())?;
        let found = tasks.tasks.iter().find(|task| task.name == format!("kubernetes/{realm}")).cloned();
        found.ok_or_else(|| format!("{tasks:?}"))
    }

    /// Waits until the watcher of the leader has the lists of its cluster.
    pub(super) async fn synced(&self) {
        until("the watcher is synced", async || {
            let status = self.status("default").await?;
            if status.succeeded_at.is_some() { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Waits until so many more scans have completed.
    pub(super) async fn scans(&self, more: u64) {
        let before = self.status("default").await.map_or(0, |status| status.runs);
        until("the watcher has scanned", async || {
            let status = self.status("default").await?;
            if status.runs >= before + more { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Names of the endpoints with an address.
    pub(super) async fn holders(&self) -> BTreeSet<String> {
        self.held().await.into_iter().map(|one| one.endpoint.name.to_string()).collect()
    }

    pub(super) async fn held(&self) -> Vec<Allocation> {
        allocations(&self.ask()).await
    }

    /// Waits until exactly these endpoints have addresses.
    pub(super) async fn only(&self, names: &BTreeSet<String>) {
        until(&format!("{} endpoints have addresses", names.len()), async || {
            let held = self.holders().await;
            if held == *names {
                return Ok(());
            }
            let difference: Vec<&String> = held.symmetric_difference(names).take(20).collect();
            Err(format!("{} hold, different: {difference:?}; {:?}", held.len(), self.status("default").await))
        })
        .await;
    }
}

pub(super) fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Creates or replaces a node.
pub(super) fn node(api: &ApiServer, name: &str, labels: Value, is_ready: bool) -> Value {
    let ready = if is_ready { "True" } else { "Unknown" };
    api.put(
        "/api/v1/nodes",
        json!({
            "metadata": {"name": name, "labels": labels},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }),
    )
}

/// Creates a pod that runs on a node; returns its uid.
pub(super) fn pod(api: &ApiServer, name: &str, node: &str, more: Value) -> String {
    let mut pod = json!({
        "metadata": {"name": name},
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.1.0.1"}]},
    });
    pod["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let pod = api.put("/api/v1/namespaces/shop/pods", pod);
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// ADD of a pod's container. No agent of the node is heard: it would keep what its containers have.
pub(super) async fn add(
    client: &Client,
    realm: &str,
    (name, node, uid): (&str, &str, &str),
    fields: Value,
) -> Result<Allocated, Problem> {
    let body = request(realm, (name, node, uid), fields);
    client.call(Call::post("/v1/allocations").json(&body).unwrap().repeatable().within(LONG)).await
}

/// Request of that ADD.
pub(super) fn request(realm: &str, (name, node, uid): (&str, &str, &str), fields: Value) -> Value {
    let mut body = json!({
        "endpoint": {"realm": realm, "kind": "pod", "namespace": "shop", "name": name},
        "uid": uid,
        "node": node,
        "attachment": attachment(realm, node, uid),
        "interfaces": [{"name": "eth0"}],
        "started": {"boot_id": "boot", "at_us": 1},
    });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

/// DEL of a pod's container.
pub(super) async fn del(scene: &Scene, node: &str, uid: &str) {
    let body = json!({
        "attachment": attachment("default", node, uid), "uid": uid,
        "started": {"boot_id": "boot", "at_us": 2},
    });
    let call = Call::post("/v1/attachments/release").json(&body).unwrap().repeatable().within(LONG);
    scene.ask().send(call).await.unwrap();
}

fn attachment(realm: &str, node: &str, uid: &str) -> Value {
    let container = format!("c-{uid}-{node}");
    json!({"realm": realm, "node": node, "config": "net", "container_id": container, "interface": "eth0"})
}
