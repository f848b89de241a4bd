//! Members that serve the claims of a management cluster.

use std::path::Path;

use ipam_api::client::{Call, Client};
use ipam_api::reclaim::{Task, Tasks};
use ipam_api::resource::{Allocation, Prefix};
use serde_json::{Value, json};

use super::management::{Management, unique};
use crate::support::ask::{allocations, get, list, put};
use crate::support::{Cluster, LONG, until};

const TIMING: &str =
    "heartbeat_ms = 100\nelection_min_ms = 600\nelection_max_ms = 1000\nlease_grace_ms = 500";

pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) management: Management,
    pub(super) realm: String,
}

/// Section of a management cluster.
pub(super) fn section(realm: &str, kubeconfig: &Path, settings: &str) -> String {
    format!("[[cluster_api]]\nrealm = {realm:?}\nkubeconfig = {kubeconfig:?}\n{settings}\n")
}

/// Members whose file has these sections.
pub(super) async fn members(count: usize, sections: &str) -> Cluster {
    let cluster = Cluster::of(count);
    std::fs::write(cluster.config(), format!("log = \"info\"\n{sections}\n[raft]\n{TIMING}\n")).unwrap();
    cluster.all_up().await
}

impl Scene {
    /// Members whose leader serves a management cluster.
    pub(super) async fn start(count: usize) -> Self {
        Self::of(Management::start().await, count, "").await
    }

    /// Members whose leader serves a given management cluster, with settings of the section.
    pub(super) async fn of(management: Management, count: usize, settings: &str) -> Self {
        let realm = unique("fleet");
        let filter = management.filter().filter(|_| !settings.contains("watch_filter"));
        let filter = filter.map_or_else(String::new, |text| format!("watch_filter = {text:?}\n"));
        let settings = format!("{filter}{settings}");
        let cluster = members(count, &section(&realm, management.kubeconfig(), &settings)).await;
        Self { cluster, management, realm }
    }

    pub(super) fn ask(&self) -> Client {
        self.cluster.ask()
    }

    /// Creates an `IPPool` in the namespace of the test.
    pub(super) async fn pool(&self, name: &str, spec: Value) {
        self.object("ippools", name, json!({"spec": spec})).await;
    }

    /// Creates an object in the namespace of the test.
    pub(super) async fn object(&self, plural: &str, name: &str, object: Value) -> Value {
        self.management.make(&self.management.namespace, plural, name, object).await.unwrap()
    }

    /// Creates a claim on an `IPPool` of its namespace.
    pub(super) async fn claim(&self, name: &str, pool: &str) {
        self.claim_with(name, ("IPPool", pool), json!({})).await;
    }

    /// Creates a claim with further metadata and fields of the spec.
    pub(super) async fn claim_with(&self, name: &str, (kind, pool): (&str, &str), more: Value) {
        let mut object = claim(kind, pool);
        for field in ["metadata", "spec"] {
            let more = more[field].as_object().cloned().unwrap_or_default();
            object[field].as_object_mut().unwrap().extend(more);
        }
        self.object("ipaddressclaims", name, object).await;
    }

    pub(super) fn path(&self, plural: &str, name: &str) -> String {
        self.management.path(plural, name)
    }

    pub(super) async fn get(&self, plural: &str, name: &str) -> Option<Value> {
        self.management.get(&self.path(plural, name)).await
    }

    pub(super) async fn delete(&self, plural: &str, name: &str) {
        self.management.delete(&self.path(plural, name)).await;
    }

    pub(super) async fn annotate(&self, plural: &str, name: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.management.patch(&self.path(plural, name), patch).await.unwrap();
    }

    /// Waits until a claim is fulfilled; returns its address as `ADDRESS/PREFIX`.
    pub(super) async fn fulfilled(&self, name: &str) -> String {
        until(&format!("claim {name} is fulfilled"), async || self.address(name).await).await
    }

    /// Address of a fulfilled claim.
    pub(super) async fn address(&self, name: &str) -> Result<String, String> {
        let claim = self.get("ipaddressclaims", name).await.ok_or("the claim is missing")?;
        let address = claim["status"]["addressRef"]["name"].as_str().map(str::to_owned);
        let Some(address) = address.filter(|_| ready(&claim).0 == "True") else {
            return Err(format!("{}; {:?}", claim["status"], self.status().await));
        };
        let object = self.get("ipaddresses", &address).await.ok_or("the address is missing")?;
        Ok(format!("{}/{}", object["spec"]["address"].as_str().unwrap(), object["spec"]["prefix"]))
    }

    /// Waits until an object has the condition `Ready` with a reason; returns the message.
    pub(super) async fn reason(&self, plural: &str, name: &str, reason: &str) -> String {
        until(&format!("{plural}/{name} shows {reason}"), async || {
            let object = self.get(plural, name).await.ok_or("it is missing")?;
            let (_, shown, message) = ready(&object);
            if shown == reason { Ok(message) } else { Err(format!("{}", object["status"])) }
        })
        .await
    }

    /// Waits until an object has a value in its status.
    pub(super) async fn shows(&self, plural: &str, name: &str, pointer: &str, value: Value) {
        until(&format!("{plural}/{name} shows {value} at {pointer}"), async || {
            let object = self.get(plural, name).await.ok_or("it is missing")?;
            match object["status"].pointer(pointer) == Some(&value) {
                true => Ok(()),
                false => Err(format!("{}; {:?}", object["status"], self.status().await)),
            }
        })
        .await;
    }

    /// Waits until an object is gone.
    pub(super) async fn gone(&self, plural: &str, name: &str) {
        until(&format!("{plural}/{name} is gone"), async || match self.get(plural, name).await {
            None => Ok(()),
            Some(object) => Err(format!("{object}; {:?}", self.status().await)),
        })
        .await;
    }

    /// Allocations of the realm.
    pub(super) async fn held(&self) -> Vec<Allocation> {
        let all = allocations(&self.ask()).await;
        all.into_iter().filter(|one| one.endpoint.realm.as_str() == self.realm).collect()
    }

    /// Prefixes of the realm, and requests that wait for one.
    pub(super) async fn prefixes(&self) -> Vec<Prefix> {
        let all: Vec<Prefix> = list(&self.ask(), "/v1/prefixes").await;
        all.into_iter().filter(|one| one.realm.as_str() == self.realm).collect()
    }

    /// Addresses of the claims of the realm, by name.
    pub(super) async fn addresses(&self) -> std::collections::BTreeMap<String, String> {
        let held = self.held().await.into_iter();
        held.map(|one| (one.endpoint.name.to_string(), one.address.addr().to_string())).collect()
    }

    /// Status of the provider, from the member that leads.
    pub(super) async fn status(&self) -> Result<Task, String> {
        let leader = self.cluster.leader().await;
        let tasks: Tasks =
            get(&self.cluster.at(leader), "/v1/tasks").await.map_err(|error| error.to_string())?;
        let found =
            tasks.tasks.iter().find(|task| task.name == format!("cluster-api/{}", self.realm)).cloned();
        found.ok_or_else(|| format!("{tasks:?}"))
    }

    /// Creates a network of ipamd with a name of its own.
    pub(super) async fn network(&self) -> String {
        let name = unique("net");
        put(&self.ask(), "networks", json!({"name": name})).await;
        name
    }

    /// Creates a pool of any kind, and waits until it serves claims.
    pub(super) async fn serving_pool(&self, plural: &str, name: &str, spec: Value) {
        self.object(plural, name, json!({"spec": spec})).await;
        self.reason(plural, name, "Applied").await;
    }

    /// Creates a claim in any namespace.
    pub(super) async fn claim_in(&self, namespace: &str, name: &str, (kind, pool): (&str, &str)) {
        self.management.make(namespace, "ipaddressclaims", name, claim(kind, pool)).await.unwrap();
    }

    /// Waits until a claim of any namespace is fulfilled; returns its address as `ADDRESS/PREFIX`.
    pub(super) async fn fulfilled_in(&self, namespace: &str, name: &str) -> String {
        let get = async |plural: &str| {
            self.management.get(&format!("{}/{name}", self.management.collection(namespace, plural))).await
        };
        until(&format!("claim {namespace}/{name} is fulfilled"), async || {
            let claim = get("ipaddressclaims").await.ok_or("the claim is missing")?;
            if ready(&claim).0 != "True" {
                return Err(format!("{}; {:?}", claim["status"], self.status().await));
            }
            let spec = get("ipaddresses").await.ok_or("the address is missing")?["spec"].take();
            Ok(format!("{}/{}", spec["address"].as_str().unwrap(), spec["prefix"]))
        })
        .await
    }

    /// Changes the spec of an object.
    pub(super) async fn change(&self, plural: &str, name: &str, spec: Value) {
        self.management.patch(&self.path(plural, name), json!({"spec": spec})).await.unwrap();
    }

    /// Disables or enables the pool in ipamd of an object.
    pub(super) async fn disable(&self, plural: &str, name: &str, is_disabled: bool) {
        let pool = self.get(plural, name).await.unwrap()["status"]["pool"].as_str().unwrap().to_owned();
        let call = Call::patch(format!("/v1/pools/{pool}")).query("take_over", "true");
        let call = call.json(&json!({"disabled": is_disabled})).unwrap();
        self.ask().send(call.within(LONG)).await.unwrap();
    }

    /// Takes a new claim through its whole life, so that all steps that were due before are taken.
    ///
    /// Its Cluster and its pool are new as well. So what happened before to claims, Clusters and pools is
    /// known to the provider, whichever stream brings it.
    pub(super) async fn settle(&self) {
        let name = unique("other");
        let network = self.network().await;
        self.object("clusters", &name, json!({"spec": {}})).await;
        self.pool(&name, json!({"addresses": ["10.200.0.10"], "prefix": 24, "network": network})).await;
        self.claim_with(&name, ("IPPool", &name), json!({"spec": {"clusterName": name}})).await;
        self.fulfilled(&name).await;
        for plural in ["ipaddressclaims", "ippools", "clusters"] {
            self.delete(plural, &name).await;
            self.gone(plural, &name).await;
        }
    }
}

/// Claim on a pool.
pub(super) fn claim(kind: &str, pool: &str) -> Value {
    json!({
        "metadata": {},
        "spec": {"poolRef": {"apiGroup": "ipam.ipamd.internal", "kind": kind, "name": pool}},
    })
}

/// Status, reason and message of the condition `Ready`.
pub(super) fn ready(object: &Value) -> (String, String, String) {
    let families = [&object["status"]["v1beta2"]["conditions"], &object["status"]["conditions"]];
    let mut all = families.into_iter().filter_map(Value::as_array).flatten();
    let ready = all.find(|one| one["type"] == "Ready").cloned().unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}
