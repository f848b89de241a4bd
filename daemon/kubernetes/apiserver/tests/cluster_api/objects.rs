//! Server with the kinds of Cluster API, and their objects.

use reqwest::Method;
use serde_json::{Value, json};
use test_apiserver::{ApiServer, ClusterApi, ClusterApiVersion};

use crate::client::ask;

pub(super) const BOTH: ClusterApi = ClusterApi::Both { storage: ClusterApiVersion::V1Beta2 };
pub(super) const V1BETA1: &str = "v1beta1";
pub(super) const V1BETA2: &str = "v1beta2";

/// Server with the namespace `shop`.
pub(super) fn server(versions: ClusterApi) -> ApiServer {
    let server = ApiServer::start();
    server.serve_cluster_api(versions);
    server.put("/api/v1/namespaces", json!({"metadata": {"name": "shop"}}));
    server
}

/// Path of a collection in the namespace `shop`.
pub(super) fn path(version: &str, plural: &str) -> String {
    let group = if plural == "clusters" { "cluster.x-k8s.io" } else { "ipam.cluster.x-k8s.io" };
    format!("/apis/{group}/{version}/namespaces/shop/{plural}")
}

pub(super) fn pool() -> Value {
    json!({"apiGroup": "ipam.test.dev", "kind": "GlobalIPPool", "name": "pool"})
}

pub(super) fn claim(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("ipam.cluster.x-k8s.io/{version}"), "kind": "IPAddressClaim",
        "metadata": {"name": name}, "spec": {"clusterName": "c1", "poolRef": pool()},
    })
}

/// Address of the claim of its name.
pub(super) fn address(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("ipam.cluster.x-k8s.io/{version}"), "kind": "IPAddress",
        "metadata": {"name": name},
        "spec": {
            "claimRef": {"name": name}, "poolRef": pool(), "address": "192.0.2.7", "prefix": 24,
            "gateway": "192.0.2.1",
        },
    })
}

/// Object that is created.
pub(super) async fn created(server: &ApiServer, plural: &str, object: &Value) -> Value {
    let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
    let (code, created) = ask(server, Method::POST, &path(version, plural), object.clone()).await;
    assert_eq!(code, 201, "{created}");
    created
}

/// Object after a merge patch.
pub(super) async fn patched(server: &ApiServer, path: &str, patch: Value) -> Value {
    let (code, object) = ask(server, Method::PATCH, path, patch).await;
    assert_eq!(code, 200, "{object}");
    object
}

/// Code and message of a refusal.
pub(super) async fn refused(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, String) {
    let (code, status) = ask(server, method, path, body).await;
    assert_eq!(status["kind"], "Status", "{status}");
    (code, status["message"].as_str().unwrap().to_owned())
}

pub(super) fn condition(kind: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": "False", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    })
}

/// Condition of the older family.
pub(super) fn legacy_condition() -> Value {
    json!({
        "type": "Ready", "status": "False", "severity": "Warning", "reason": "Legacy", "message": "old",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}
