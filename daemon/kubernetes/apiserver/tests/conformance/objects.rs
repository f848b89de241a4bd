//! Objects: creation, reads, concurrent updates, finalizers and lists.

use serde_json::json;

use super::cluster::{Cluster, config_map, name};

#[tokio::test]
async fn an_object_is_created_read_updated_and_deleted() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let created = cluster.post(&all, &config_map("one")).await.expect(201);
    assert_eq!(
        (&created["kind"], &created["metadata"]["namespace"]),
        (&json!("ConfigMap"), &json!(cluster.namespace))
    );
    assert!(created["metadata"]["uid"].is_string(), "{created}");
    let again = cluster.post(&all, &config_map("one")).await;
    assert!(again.refused(409, "AlreadyExists").contains("\"one\" already exists"));
    let one = format!("{all}/one");
    assert_eq!(cluster.get(&one).await.expect(200), created);
    let mut next = created.clone();
    next["data"]["key"] = json!("other");
    let updated = cluster.put(&one, &next).await.expect(200);
    assert_ne!(updated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    // The version that was read is now outdated.
    assert!(cluster.put(&one, &next).await.refused(409, "Conflict").contains("has been modified"));
    let unnamed = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {}});
    cluster.put(&one, &unnamed).await.refused(400, "BadRequest");
    // An update without a change is no change.
    let same = cluster.put(&one, &updated).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], updated["metadata"]["resourceVersion"]);
    let other_uid = json!({"preconditions": {"uid": "no-such-uid"}});
    cluster.delete(&one, other_uid).await.refused(409, "Conflict");
    assert_eq!(cluster.delete(&one, json!({})).await.expect(200)["status"], "Success");
    cluster.get(&one).await.refused(404, "NotFound");
    cluster.delete(&one, json!({})).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let one = format!("{all}/one");
    let dry = cluster.post(&format!("{all}?dryRun=All"), &config_map("one")).await.expect(201);
    assert!(dry["metadata"]["uid"].is_string(), "{dry}");
    cluster.get(&one).await.refused(404, "NotFound");
    let created = cluster.post(&all, &config_map("one")).await.expect(201);
    let changed =
        cluster.merge(&format!("{one}?dryRun=All"), json!({"data": {"key": "x"}})).await.expect(200);
    assert_eq!(changed["data"]["key"], "x");
    cluster.delete(&format!("{one}?dryRun=All"), json!({})).await.expect(200);
    assert_eq!(cluster.get(&one).await.expect(200), created);
}

#[tokio::test]
async fn a_name_is_generated_and_a_wrong_one_refused() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let mut object = config_map("x");
    object["metadata"] = json!({"generateName": "x-"});
    let created = cluster.post(&all, &object).await.expect(201);
    assert!(created["metadata"]["name"].as_str().unwrap().len() > 2, "{created}");
    cluster.post(&all, &config_map("Not_A_Name")).await.refused(422, "Invalid");
    object["metadata"] = json!({"name": "x", "namespace": "elsewhere"});
    cluster.post(&all, &object).await.refused(400, "BadRequest");
    let missing = format!("/api/v1/namespaces/{}/configmaps", name("missing"));
    cluster.post(&missing, &config_map("x")).await.refused(404, "NotFound");
    cluster.post("/api/v1/configmaps", &config_map("x")).await.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object() {
    let cluster = Cluster::start().await;
    let all = cluster.collection("v1/configmaps");
    let mut object = config_map("one");
    object["metadata"]["finalizers"] = json!(["ipamd.test/hold"]);
    cluster.post(&all, &object).await.expect(201);
    let one = format!("{all}/one");
    let held = cluster.delete(&one, json!({})).await.expect(200);
    assert!(held["metadata"]["deletionTimestamp"].is_string(), "{held}");
    let again = cluster.post(&all, &config_map("one")).await;
    assert!(again.refused(409, "AlreadyExists").starts_with("object is being deleted: "));
    let more = json!({"metadata": {"finalizers": ["ipamd.test/hold", "ipamd.test/more"]}});
    cluster.merge(&one, more).await.refused(422, "Invalid");
    // A deletion can't be cancelled.
    let back = cluster.merge(&one, json!({"metadata": {"deletionTimestamp": null}})).await.expect(200);
    assert!(back["metadata"]["deletionTimestamp"].is_string(), "{back}");
    cluster.merge(&one, json!({"metadata": {"finalizers": null}})).await.expect(200);
    cluster.until_gone(&one).await;
}
