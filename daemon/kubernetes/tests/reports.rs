//! Reports of pods, by which the servers verify claims of nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fixture::{Fixture, Recorder};

const PODS: &str = "/api/v1/namespaces/shop/pods";

type Reported = BTreeMap<String, Value>;

fn reported(servers: &Recorder) -> Reported {
    servers.change(|model| model.reported.clone())
}

fn complete(servers: &Recorder) -> usize {
    servers.change(|model| model.complete)
}

async fn until_complete(fixture: &Fixture) -> Reported {
    fixture
        .servers
        .until("a complete report", |servers| (complete(servers) > 0).then(|| reported(servers)))
        .await
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// Pod of a ReplicaSet of a Deployment.
fn owned(fixture: &Fixture) -> String {
    fixture.cluster.put(
        "/apis/apps/v1/namespaces/shop/deployments",
        json!({"metadata": {"name": "web", "uid": "d1"}, "spec": {"replicas": 1}}),
    );
    fixture.cluster.put(
        "/apis/apps/v1/namespaces/shop/replicasets",
        json!({"metadata": {"name": "web-5d", "uid": "r1",
                            "ownerReferences": owner("apps/v1", "Deployment", "web", "d1")}}),
    );
    let pod = json!({"metadata": {"name": "web-5d-x", "labels": {"app": "web"},
                                  "ownerReferences": owner("apps/v1", "ReplicaSet", "web-5d", "r1")},
                     "spec": {"nodeName": "n1"}});
    fixture.cluster.put(PODS, pod)["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_pod_is_reported_with_its_labels_and_all_controllers() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let uid = owned(&fixture);
    let _running = fixture.synced().await;
    let all = until_complete(&fixture).await;
    assert_eq!(
        all[&uid],
        json!({"uid": uid, "endpoint": {"kind": "pod", "namespace": "shop", "name": "web-5d-x"},
               "node": "n1", "labels": {"app": "web"},
               "controllers": [{"group": "apps", "kind": "ReplicaSet", "name": "web-5d", "uid": "r1"},
                               {"group": "apps", "kind": "Deployment", "name": "web", "uid": "d1"}]})
    );
    assert_eq!(all.len(), 1);
}

#[tokio::test]
async fn only_changes_of_what_is_verified_are_reported_again() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let uid = fixture.bare_pod("web-0", "n1");
    let unbound = fixture.cluster.put(PODS, json!({"metadata": {"name": "web-1"}, "spec": {}}));
    fixture
        .cluster
        .put(PODS, json!({"metadata": {"name": "host"}, "spec": {"nodeName": "n1", "hostNetwork": true}}));
    let mut running = fixture.synced().await;
    assert!(until_complete(&fixture).await.into_keys().eq([uid.clone()]));
    let mut pod = fixture.cluster.get(&format!("{PODS}/web-0")).unwrap();
    pod["status"]["phase"] = "Succeeded".into();
    fixture.cluster.put(PODS, pod.clone());
    running.scans(2).await;
    let with_pods = |servers: &Recorder| {
        servers.sent("/v1/pods").into_iter().filter(|sent| !sent.body["pods"].is_null()).count()
    };
    assert_eq!(fixture.servers.until("the reports", |servers| Some(with_pods(servers))).await, 1);
    pod["metadata"]["labels"] = json!({"app": "other"});
    fixture.cluster.put(PODS, pod);
    let is_new = |servers: &Recorder| (reported(servers)[&uid]["labels"]["app"] == "other").then_some(());
    fixture.servers.until("the new label", is_new).await;
    let mut bound = unbound;
    bound["spec"]["nodeName"] = "n2".into();
    let other = fixture.cluster.put(PODS, bound)["metadata"]["uid"].as_str().unwrap().to_owned();
    let is_new = |servers: &Recorder| reported(servers).contains_key(&other).then_some(());
    fixture.servers.until("the bound pod", is_new).await;
    fixture.remove_pod("web-0");
    let is_gone = |servers: &Recorder| (!reported(servers).contains_key(&uid)).then_some(());
    fixture.servers.until("the removal", is_gone).await;
}

#[tokio::test]
async fn a_new_watcher_removes_pods_that_went_before_it() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let uid = fixture.bare_pod("web-0", "n1");
    fixture.servers.change(|model| drop(model.reported.insert("u-old".to_owned(), json!({}))));
    let mut running = fixture.synced().await;
    let is_gone = |servers: &Recorder| (!reported(servers).contains_key("u-old")).then_some(());
    fixture.servers.until("the removal", is_gone).await;
    running.scans(2).await;
    assert_eq!(reported(&fixture.servers).into_keys().collect::<Vec<_>>(), [uid]);
}

#[tokio::test]
async fn without_verification_nothing_is_reported_and_earlier_reports_are_removed() {
    let mut fixture = Fixture::new();
    fixture.verify = false;
    fixture.node("n1");
    let uid = fixture.bare_pod("web-0", "n1");
    fixture.servers.change(|model| drop(model.reported.insert(uid, json!({}))));
    let mut running = fixture.synced().await;
    fixture.servers.until("the removal", |servers| reported(servers).is_empty().then_some(())).await;
    running.scans(2).await;
    fixture.remove_pod("web-0");
    running.scans(2).await;
    let sent = fixture.servers.until("the reports", |servers| Some(servers.sent("/v1/pods"))).await;
    assert_eq!((sent.len(), complete(&fixture.servers)), (1, 0), "{sent:?}");
}

#[tokio::test]
async fn reports_that_the_servers_have_lost_are_sent_again() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let uid = fixture.bare_pod("web-0", "n1");
    let _running = fixture.synced().await;
    until_complete(&fixture).await;
    // This is the state after the restore of a backup.
    fixture.servers.change(|model| model.reported.clear());
    let is_back = |servers: &Recorder| reported(servers).contains_key(&uid).then_some(());
    fixture.servers.until("the report", is_back).await;
}

#[tokio::test]
async fn reports_are_repeated_until_the_servers_answer() {
    let fixture = Fixture::new();
    fixture.node("n1");
    for number in 0..600 {
        fixture.bare_pod(&format!("web-{number}"), "n1");
    }
    fixture.servers.change(|model| model.failing = 3);
    let _running = fixture.synced().await;
    assert_eq!(until_complete(&fixture).await.len(), 600);
    let sizes = |servers: &Recorder| {
        let sent = servers.sent("/v1/pods");
        let sizes = sent.iter().map(|sent| sent.body["pods"].as_array().map_or(0, Vec::len));
        Some(sizes.max().unwrap_or_default())
    };
    assert_eq!(fixture.servers.until("the sizes", sizes).await, 256);
}

#[tokio::test]
async fn an_incomplete_view_verifies_nothing() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.bare_pod("web-0", "n1");
    fixture.servers.change(|model| model.refuses_reports = true);
    let mut running = fixture.synced().await;
    running.until(|status| !status.refused.is_empty()).await;
    fixture.servers.change(|model| model.refuses_reports = false);
    let uid = fixture.bare_pod("web-1", "n1");
    let is_there = |servers: &Recorder| reported(servers).contains_key(&uid).then_some(());
    fixture.servers.until("a later report", is_there).await;
    assert_eq!(complete(&fixture.servers), 0, "one pod is not reported");
    assert!(fixture.servers.holders().is_empty());
}

#[tokio::test]
async fn a_pod_whose_owner_is_gone_is_reported_with_that_owner() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let owner = owner("apps/v1", "ReplicaSet", "web-5d", "r1");
    let pod = json!({"metadata": {"name": "web-5d-x", "ownerReferences": owner}, "spec": {"nodeName": "n1"}});
    let uid = fixture.cluster.put(PODS, pod)["metadata"]["uid"].as_str().unwrap().to_owned();
    let _running = fixture.synced().await;
    let report = |servers: &Recorder| reported(servers).get(&uid).cloned();
    let report = fixture.servers.until("the report", report).await;
    assert_eq!(
        report["controllers"],
        json!([{"group": "apps", "kind": "ReplicaSet", "name": "web-5d", "uid": "r1"}])
    );
}
