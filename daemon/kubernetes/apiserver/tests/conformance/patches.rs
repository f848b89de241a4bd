//! Patches: RFC 7396 and RFC 6902.

use reqwest::Method;
use serde_json::{Value, json};

use super::cluster::{Answer, Cluster, config_map};

async fn json_patch(cluster: &Cluster, path: &str, operations: Value) -> Answer {
    let media_type = "application/json-patch+json";
    cluster.send(Method::PATCH, path, media_type, &operations.to_string()).await
}

#[tokio::test]
async fn a_merge_patch_changes_and_removes_fields() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let created = cluster.post(&all, &config_map("one")).await.expect(201);
    let one = format!("{all}/one");
    let patch = json!({"metadata": {"labels": {"app": null, "tier": "a"}}, "data": {"more": "1"}});
    let patched = cluster.merge(&one, patch).await.expect(200);
    assert_eq!(patched["metadata"]["labels"], json!({"tier": "a"}));
    assert_eq!(patched["data"], json!({"key": "value", "more": "1"}));
    let old =
        json!({"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"x": "y"}});
    cluster.merge(&one, old).await.refused(409, "Conflict");
    let unknown = cluster.send(Method::PATCH, &one, "application/unknown", "{}").await;
    unknown.refused(415, "UnsupportedMediaType");
    cluster.merge(&format!("{all}/none"), json!({})).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_json_patch_has_six_operations() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    cluster.post(&all, &config_map("one")).await.expect(201);
    let one = format!("{all}/one");
    let operations = json!([
        {"op": "test", "path": "/data/key", "value": "value"},
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "1", "a~b": "2"}},
        {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "3"},
        {"op": "copy", "from": "/data/key", "path": "/data/copy"},
        {"op": "move", "from": "/data/key", "path": "/data/moved"},
        {"op": "remove", "path": "/metadata/annotations/a~0b"},
    ]);
    let patched = json_patch(&cluster, &one, operations).await.expect(200);
    assert_eq!(patched["data"], json!({"copy": "value", "moved": "value"}));
    assert_eq!(patched["metadata"]["annotations"], json!({"a/b": "3"}));
    // If one operation fails, none is applied.
    let failing = json!([
        {"op": "add", "path": "/data/x", "value": "y"},
        {"op": "test", "path": "/data/copy", "value": "other"},
    ]);
    assert_eq!(json_patch(&cluster, &one, failing).await.code, 422);
    assert_eq!(json_patch(&cluster, &one, json!([{"op": "remove", "path": "/data/none"}])).await.code, 422);
    json_patch(&cluster, &one, json!({"op": "remove"})).await.refused(400, "BadRequest");
    assert_eq!(cluster.get(&one).await.expect(200)["data"], patched["data"]);
    let stale = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "add", "path": "/data/x", "value": "y"},
    ]);
    json_patch(&cluster, &one, stale).await.refused(409, "Conflict");
}
