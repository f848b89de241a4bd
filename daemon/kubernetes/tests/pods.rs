//! Deletions and ends of pods.

use serde_json::{Value, json};

use crate::fixture::{Fixture, endpoint, node};

#[tokio::test]
async fn a_watched_deletion_is_one_fact() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let (gone, alive) = (fixture.pod("web-0", "n1"), fixture.pod("web-1", "n1"));
    let mut running = fixture.synced().await;
    fixture.remove_pod("web-0");
    fixture.servers.until("the fact", |servers| (servers.holders() == [alive.clone()]).then_some(())).await;
    running.scans(3).await;
    assert_eq!(fixture.servers.facts(), [(gone, "deleted".to_owned())]);
}

#[tokio::test]
async fn a_pod_on_the_network_of_its_node_is_no_fact() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let host = json!({"metadata": {"name": "proxy"}, "spec": {"hostNetwork": true, "nodeName": "n1"}});
    fixture.cluster.put("/api/v1/namespaces/shop/pods", host);
    let uid = fixture.pod("web-0", "n1");
    let _running = fixture.synced().await;
    fixture.remove_pod("proxy");
    fixture.remove_pod("web-0");
    fixture.servers.until("the fact", |servers| servers.holders().is_empty().then_some(())).await;
    assert_eq!(fixture.servers.facts(), [(uid, "deleted".to_owned())]);
}

#[tokio::test]
async fn deletions_are_repeated_until_the_servers_answer() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.pod("web-0", "n1");
    let mut running = fixture.synced().await;
    running.scans(1).await;
    fixture.servers.change(|model| model.failing = 5);
    fixture.remove_pod("web-0");
    fixture.servers.until("the release", |servers| servers.holders().is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_pod_that_terminates_is_judged_by_the_state_of_its_node() {
    let fixture = Fixture::new();
    fixture.cluster.put("/api/v1/nodes", node("n1", "False", json!({})));
    let uid = fixture.pod("web-0", "n1");
    fixture.servers.change(|model| model.reclaims_terminating = true);
    let mut running = fixture.synced().await;
    let mut pod = fixture.cluster.get("/api/v1/namespaces/shop/pods/web-0").unwrap();
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z".into();
    fixture.cluster.put("/api/v1/namespaces/shop/pods", pod);
    let first = fixture.servers.until("the fact", |servers| servers.sent("/v1/workloads").pop()).await;
    let workload = &first.body["workloads"][0];
    assert_eq!((&workload["uid"], &workload["gone"]), (&json!(uid), &json!("none")));
    assert_eq!(workload["node"], json!({"name": "n1", "state": "not-ready"}));
    assert_eq!(workload["deletion_due_at"], "2026-01-01T00:00:30.000Z");
    running.scans(2).await;
    assert_eq!(fixture.servers.holders(), [uid]);
    fixture.node("n1");
    fixture.servers.until("the release", |servers| servers.holders().is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_pod_that_the_view_lacks_is_gone_after_two_scans_and_a_quorum_read() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let alive = fixture.pod("web-0", "n1");
    // These pods were deleted before the watch. A new pod has the name of the second one.
    for (name, uid) in [("web-9", "old-9"), ("web-0", "old-0")] {
        fixture.servers.hold(endpoint("pod", name, uid, Value::Null));
    }
    // This endpoint is no pod of this cluster.
    fixture.servers.hold(endpoint("host", "rack-1", "h1", Value::Null));
    let _running = fixture.synced().await;
    let expected = [alive, "h1".to_owned()];
    fixture.servers.until("the release", |servers| (servers.holders() == expected).then_some(())).await;
    let mut facts = fixture.servers.facts();
    facts.sort();
    assert_eq!(facts, [("old-0".to_owned(), "absent".to_owned()), ("old-9".to_owned(), "absent".to_owned())]);
    let gets = fixture.cluster.requests().into_iter().filter(|request| request.verb == "get");
    assert_eq!(gets.count(), 2, "one read for each");
}

#[tokio::test]
async fn the_pod_of_a_machine_is_looked_for_by_its_uid() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let owner = json!([{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "db",
                        "uid": "m1", "controller": true}]);
    let launcher = |name: &str| {
        let pod = json!({"metadata": {"name": name, "ownerReferences": owner}, "spec": {"nodeName": "n1"}});
        let pod = fixture.cluster.put("/api/v1/namespaces/shop/pods", pod);
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    let (one, other) = (launcher("virt-launcher-db-1"), launcher("virt-launcher-db-2"));
    for uid in [&one, &other, &"lost".to_owned()] {
        fixture.servers.hold(endpoint("vm", "db", uid, Value::Null));
    }
    let _running = fixture.synced().await;
    let is = |uids: Vec<String>| {
        move |servers: &crate::fixture::Recorder| (servers.holders() == uids).then_some(())
    };
    fixture.servers.until("the lost one", is(vec![one.clone(), other.clone()])).await;
    fixture.remove_pod("virt-launcher-db-1");
    fixture.servers.until("the deleted one", is(vec![other])).await;
    assert_eq!(
        fixture.servers.facts(),
        [("lost".to_owned(), "absent".to_owned()), (one, "deleted".to_owned())]
    );
}

#[tokio::test]
async fn no_request_is_made_for_a_single_pod() {
    let fixture = Fixture::new();
    fixture.node("n1");
    for number in 0..2000 {
        fixture.pod(&format!("web-{number}"), "n1");
    }
    let mut running = fixture.synced().await;
    running.scans(3).await;
    let status = running.until(|status| status.counts.pods == 2000).await;
    assert_eq!(status.absent, 0);
    let requests = fixture.cluster.requests();
    let gets = requests.iter().filter(|request| request.verb == "get").count();
    let lists =
        requests.iter().filter(|request| request.verb == "list" && request.resource == "pods").count();
    println!("2000 pods: {} requests, {lists} pages of pods, {gets} reads of objects", requests.len());
    assert_eq!((lists, gets), (4, 0));
    assert!(fixture.servers.facts().is_empty());
}

#[tokio::test]
async fn pages_get_smaller_if_pods_are_large() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let note = "x".repeat(200_000);
    for number in 0..100 {
        let metadata = json!({"name": format!("web-{number}"), "annotations": {"note": note}});
        fixture.cluster.put("/api/v1/namespaces/shop/pods", json!({"metadata": metadata}));
    }
    let status = fixture.synced().await.until(|status| status.counts.pods == 100).await;
    assert!(status.synced);
}
