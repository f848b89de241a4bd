//! Life of claims and addresses: finalizers, owners, namespaces.

use reqwest::Method;
use serde_json::{Value, json};
use test_apiserver::ApiServer;

use super::objects::{BOTH, V1BETA2, address, claim, created, patched, path, refused, server};
use crate::client::{ask, get};

const POOLS: &str = "/apis/ipam.test.dev/v1/globalippools";
const HOLD: &str = "test.dev/hold";

fn one(plural: &str) -> String {
    format!("{}/one", path(V1BETA2, plural))
}

/// Server with a pool of the whole cluster.
async fn scene() -> (ApiServer, Value) {
    let server = server(BOTH);
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({"metadata": {"name": "globalippools.ipam.test.dev"}, "spec": {
        "group": "ipam.test.dev", "scope": "Cluster",
        "names": {"plural": "globalippools", "kind": "GlobalIPPool"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    server.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    let pool =
        json!({"apiVersion": "ipam.test.dev/v1", "kind": "GlobalIPPool", "metadata": {"name": "pool"}});
    let (code, pool) = ask(&server, Method::POST, POOLS, pool).await;
    assert_eq!(code, 201, "{pool}");
    (server, pool)
}

/// Reference to an owner that blocks the deletion of the owner.
fn reference(owner: &Value, is_controller: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": is_controller, "blockOwnerDeletion": true,
    })
}

/// Claim and its address, as a provider makes them; the address with these finalizers.
async fn pair(server: &ApiServer, pool: &Value, finalizers: Value) -> (Value, Value) {
    let claim = created(server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let mut object = address(V1BETA2, "one");
    object["metadata"]["ownerReferences"] = json!([reference(&claim, true), reference(pool, false)]);
    object["metadata"]["finalizers"] = finalizers;
    let address = created(server, "ipaddresses", &object).await;
    assert_eq!(address["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
    (claim, address)
}

async fn delete(server: &ApiServer, path: &str, propagation: &str) -> Value {
    let (code, answer) = ask(server, Method::DELETE, path, json!({"propagationPolicy": propagation})).await;
    assert_eq!(code, 200, "{answer}");
    answer
}

#[tokio::test]
async fn a_stale_patch_of_finalizers_is_a_conflict() {
    let (server, _) = scene().await;
    let first = created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let version = &first["metadata"]["resourceVersion"];
    let patch = |version: &Value, finalizers: Value| {
        let metadata = json!({"resourceVersion": version, "finalizers": finalizers});
        json!({"metadata": metadata})
    };
    let second = patched(&server, &one("ipaddressclaims"), patch(version, json!([HOLD]))).await;
    let stale = patch(version, json!([HOLD, "test.dev/other"]));
    assert_eq!(refused(&server, Method::PATCH, &one("ipaddressclaims"), stale).await.0, 409);
    let deleted = delete(&server, &one("ipaddressclaims"), "Background").await;
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    let stale = patch(&second["metadata"]["resourceVersion"], Value::Null);
    assert_eq!(refused(&server, Method::PATCH, &one("ipaddressclaims"), stale).await.0, 409);
    assert_eq!(get(&server, &one("ipaddressclaims")).await.0, 200);
    let last = patch(&deleted["metadata"]["resourceVersion"], json!([]));
    patched(&server, &one("ipaddressclaims"), last).await;
    assert_eq!(get(&server, &one("ipaddressclaims")).await.0, 404);
}

#[tokio::test]
async fn an_address_goes_with_its_claim() {
    let (server, pool) = scene().await;
    pair(&server, &pool, json!([HOLD])).await;
    // The pool still owns the address.
    delete(&server, &one("ipaddressclaims"), "Background").await;
    let address = get(&server, &one("ipaddresses")).await.1;
    assert_eq!(address["metadata"]["ownerReferences"], json!([reference(&pool, false)]));
    assert!(address["metadata"]["deletionTimestamp"].is_null(), "{address}");
    delete(&server, &format!("{POOLS}/pool"), "Background").await;
    assert_eq!(get(&server, &format!("{POOLS}/pool")).await.0, 404);
    let address = get(&server, &one("ipaddresses")).await.1;
    assert!(address["metadata"]["deletionTimestamp"].is_string(), "{address}");
    patched(&server, &one("ipaddresses"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, &one("ipaddresses")).await.0, 404);
}

#[tokio::test]
async fn a_claim_deleted_in_the_foreground_waits_for_its_address() {
    let (server, _) = scene().await;
    let claim = created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let mut object = address(V1BETA2, "one");
    object["metadata"]["ownerReferences"] = json!([reference(&claim, true)]);
    object["metadata"]["finalizers"] = json!([HOLD]);
    created(&server, "ipaddresses", &object).await;
    patched(&server, &one("ipaddressclaims"), json!({"metadata": {"finalizers": [HOLD]}})).await;
    delete(&server, &one("ipaddressclaims"), "Foreground").await;
    let finalizers = async || get(&server, &one("ipaddressclaims")).await.1["metadata"]["finalizers"].clone();
    assert_eq!(finalizers().await, json!([HOLD, "foregroundDeletion"]));
    assert!(get(&server, &one("ipaddresses")).await.1["metadata"]["deletionTimestamp"].is_string());
    patched(&server, &one("ipaddresses"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, &one("ipaddresses")).await.0, 404);
    assert_eq!(finalizers().await, json!([HOLD]));
    patched(&server, &one("ipaddressclaims"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, &one("ipaddressclaims")).await.0, 404);
}

#[tokio::test]
async fn a_pool_of_the_cluster_deleted_in_the_foreground_leaves_addresses_with_claims() {
    let (server, pool) = scene().await;
    let (claim, _) = pair(&server, &pool, json!([HOLD])).await;
    delete(&server, &format!("{POOLS}/pool"), "Foreground").await;
    assert_eq!(get(&server, &format!("{POOLS}/pool")).await.0, 404);
    let address = get(&server, &one("ipaddresses")).await.1;
    assert_eq!(address["metadata"]["ownerReferences"], json!([reference(&claim, true)]));
    assert!(address["metadata"]["deletionTimestamp"].is_null(), "{address}");
}

#[tokio::test]
async fn a_pool_of_the_cluster_waits_for_addresses_without_claims() {
    let (server, pool) = scene().await;
    let mut object = address(V1BETA2, "one");
    object["metadata"]["ownerReferences"] = json!([reference(&pool, false)]);
    object["metadata"]["finalizers"] = json!([HOLD]);
    created(&server, "ipaddresses", &object).await;
    delete(&server, &format!("{POOLS}/pool"), "Foreground").await;
    assert_eq!(get(&server, &format!("{POOLS}/pool")).await.0, 200);
    // The address releases its owner without being deleted.
    patched(&server, &one("ipaddresses"), json!({"metadata": {"ownerReferences": null}})).await;
    assert_eq!(get(&server, &format!("{POOLS}/pool")).await.0, 404);
    assert_eq!(get(&server, &one("ipaddresses")).await.0, 200);
}

#[tokio::test]
async fn a_pool_of_the_cluster_ignores_an_owner_in_a_namespace() {
    let (server, pool) = scene().await;
    let owner = created(&server, "ipaddressclaims", &claim(V1BETA2, "one")).await;
    let references = json!({"metadata": {"ownerReferences": [reference(&owner, false)]}});
    let path = format!("{POOLS}/pool");
    patched(&server, &path, references).await;
    assert_eq!(get(&server, &path).await.1["metadata"]["uid"], pool["metadata"]["uid"]);
    delete(&server, &one("ipaddressclaims"), "Background").await;
    assert_eq!(get(&server, &path).await.0, 200);
}

#[tokio::test]
async fn a_namespace_ends_after_its_claims_and_addresses() {
    let (server, pool) = scene().await;
    pair(&server, &pool, json!([HOLD])).await;
    patched(&server, &one("ipaddressclaims"), json!({"metadata": {"finalizers": [HOLD]}})).await;
    let namespace = "/api/v1/namespaces/shop";
    delete(&server, namespace, "Background").await;
    let (code, message) =
        refused(&server, Method::POST, &path(V1BETA2, "ipaddresses"), address(V1BETA2, "late")).await;
    assert_eq!(code, 403);
    assert!(message.contains("because it is being terminated"), "{message}");
    for plural in ["ipaddresses", "ipaddressclaims"] {
        let held = get(&server, &one(plural)).await.1;
        assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
        assert_eq!(get(&server, namespace).await.1["status"]["phase"], "Terminating");
        patched(&server, &one(plural), json!({"metadata": {"finalizers": null}})).await;
        assert_eq!(get(&server, &one(plural)).await.0, 404);
    }
    assert_eq!(get(&server, namespace).await.0, 404);
    assert_eq!(get(&server, &format!("{POOLS}/pool")).await.0, 200);
}
