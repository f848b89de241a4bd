//! Garbage collection: dependents of owners, collections, and contents of namespaces.

use reqwest::Method;
use serde_json::{Value, json};

use super::cluster::{Cluster, JSON, config_map, name};

/// ConfigMap that depends on these owners.
fn dependent(name: &str, owners: &[(&Value, bool)]) -> Value {
    let reference = |(owner, blocks): &(&Value, bool)| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
        })
    };
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    object
}

#[tokio::test]
async fn dependents_are_deleted_after_their_last_owner() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let a = cluster.post(&all, &config_map("a")).await.expect(201);
    let b = cluster.post(&all, &config_map("b")).await.expect(201);
    let one = cluster.post(&all, &dependent("one", &[(&a, false)])).await.expect(201);
    cluster.post(&all, &dependent("both", &[(&a, false), (&b, false)])).await.expect(201);
    cluster.post(&all, &dependent("second", &[(&one, false)])).await.expect(201);
    let options = json!({"propagationPolicy": "Background"});
    cluster.delete(&format!("{all}/a"), options).await.expect(200);
    for gone in ["a", "one", "second"] {
        cluster.until_gone(&format!("{all}/{gone}")).await;
    }
    let owners = |count| {
        move |answer: &super::cluster::Answer| {
            answer.body["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len) == count
        }
    };
    let both = cluster.until(&format!("{all}/both"), owners(1)).await;
    assert_eq!(both.body["metadata"]["ownerReferences"][0]["uid"], b["metadata"]["uid"]);
    cluster.delete(&format!("{all}/b?propagationPolicy=Orphan"), json!({})).await.expect(200);
    cluster.until_gone(&format!("{all}/b")).await;
    let orphan = cluster.until(&format!("{all}/both"), owners(0)).await;
    orphan.expect(200);
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_blocking_dependents() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let owner = cluster.post(&all, &config_map("owner")).await.expect(201);
    cluster.post(&all, &dependent("free", &[(&owner, true)])).await.expect(201);
    let mut held = dependent("held", &[(&owner, true)]);
    held["metadata"]["finalizers"] = json!(["ipamd.test/hold"]);
    cluster.post(&all, &held).await.expect(201);
    let options = json!({"propagationPolicy": "Foreground"});
    let waiting = cluster.delete(&format!("{all}/owner"), options).await.expect(200);
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{waiting}");
    cluster.until_gone(&format!("{all}/free")).await;
    let is_deleting =
        |answer: &super::cluster::Answer| answer.body["metadata"]["deletionTimestamp"].is_string();
    cluster.until(&format!("{all}/held"), is_deleting).await;
    cluster.get(&format!("{all}/owner")).await.expect(200);
    cluster.merge(&format!("{all}/held"), json!({"metadata": {"finalizers": []}})).await.expect(200);
    cluster.until_gone(&format!("{all}/held")).await;
    cluster.until_gone(&format!("{all}/owner")).await;
}

#[tokio::test]
async fn a_dependent_without_a_living_owner_is_garbage() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let owner = json!({"metadata": {"name": "none", "uid": "00000000-0000-4000-8000-000000000000"}});
    cluster.post(&all, &dependent("one", &[(&owner, false)])).await.expect(201);
    cluster.until_gone(&format!("{all}/one")).await;
}

#[tokio::test]
async fn a_dependent_loses_its_reference_to_an_absent_owner() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let none = json!({"metadata": {"name": "none", "uid": "00000000-0000-4000-8000-000000000000"}});
    let owner = cluster.post(&all, &config_map("owner")).await.expect(201);
    cluster.post(&all, &dependent("one", &[(&none, false), (&owner, false)])).await.expect(201);
    let has_one = |answer: &super::cluster::Answer| {
        answer.body["metadata"]["ownerReferences"].as_array().is_some_and(|all| all.len() == 1)
    };
    let one = cluster.until(&format!("{all}/one"), has_one).await;
    assert_eq!(one.body["metadata"]["ownerReferences"][0]["uid"], owner["metadata"]["uid"]);
}

#[tokio::test]
async fn a_foreground_deletion_ends_when_the_last_dependent_drops_its_reference() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let owner = cluster.post(&all, &config_map("owner")).await.expect(201);
    let mut held = dependent("held", &[(&owner, true)]);
    held["metadata"]["finalizers"] = json!(["ipamd.test/hold"]);
    cluster.post(&all, &held).await.expect(201);
    let options = json!({"propagationPolicy": "Foreground"});
    cluster.delete(&format!("{all}/owner"), options).await.expect(200);
    let held = format!("{all}/held");
    cluster.until(&held, |answer| answer.body["metadata"]["deletionTimestamp"].is_string()).await;
    cluster.merge(&held, json!({"metadata": {"ownerReferences": null}})).await.expect(200);
    cluster.until_gone(&format!("{all}/owner")).await;
    cluster.merge(&held, json!({"metadata": {"finalizers": null}})).await.expect(200);
    cluster.until_gone(&held).await;
}

#[tokio::test]
async fn a_collection_is_deleted_by_labels() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    for one in ["a", "b"] {
        cluster.post(&all, &config_map(one)).await.expect(201);
    }
    let mut other = config_map("c");
    other["metadata"]["labels"] = json!({"app": "db"});
    cluster.post(&all, &other).await.expect(201);
    let selected = format!("{all}?labelSelector=app%3Dweb");
    let deleted = cluster.send(Method::DELETE, &selected, JSON, "").await.expect(200);
    assert_eq!(deleted["kind"], "ConfigMapList");
    for gone in ["a", "b"] {
        cluster.until_gone(&format!("{all}/{gone}")).await;
    }
    cluster.get(&format!("{all}/c")).await.expect(200);
    cluster.delete("/api/v1/configmaps", json!({})).await.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn a_namespace_ends_after_its_contents() {
    let mut cluster = Cluster::start().await;
    let name = name("ipamd-conformance");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let created = cluster.create("/api/v1/namespaces", namespace).await;
    assert_eq!(
        (&created["status"]["phase"], &created["spec"]["finalizers"]),
        (&json!("Active"), &json!(["kubernetes"]))
    );
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], json!(name));
    let path = format!("/api/v1/namespaces/{name}");
    let all = format!("{path}/configmaps");
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["ipamd.test/hold"]);
    cluster.post(&all, &held).await.expect(201);
    cluster.post(&all, &config_map("free")).await.expect(201);
    let deleted = cluster.delete(&path, json!({})).await.expect(200);
    assert_eq!(deleted["status"]["phase"], "Terminating");
    let refused = cluster.post(&all, &config_map("late")).await;
    refused.refused(403, "Forbidden");
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    cluster.until_gone(&format!("{all}/free")).await;
    let held = format!("{all}/held");
    cluster.until(&held, |answer| answer.body["metadata"]["deletionTimestamp"].is_string()).await;
    cluster.get(&path).await.expect(200);
    cluster.merge(&held, json!({"metadata": {"finalizers": null}})).await.expect(200);
    cluster.until_gone(&path).await;
}
