//! Faults of the API server: no existing pod loses its address, and no deleted pod is forgotten.

use test_apiserver::Fault;

use crate::fixture::Fixture;

/// Deletes pods while the view can't see it. Expects facts only about these pods, and only after the fault.
async fn deleted_during(begin: &[Fault], end: &[Fault], evidence: &[&str]) {
    let fixture = Fixture::new();
    fixture.node("n1");
    let uids: Vec<String> = (0..10).map(|number| fixture.pod(&format!("web-{number}"), "n1")).collect();
    let mut running = fixture.synced().await;
    for fault in begin {
        fixture.cluster.fault(fault.clone());
    }
    for number in 0..5 {
        fixture.remove_pod(&format!("web-{number}"));
    }
    running.scans(1).await;
    for fault in end {
        fixture.cluster.fault(fault.clone());
    }
    fixture.servers.until("the release", |servers| (servers.holders() == uids[5..]).then_some(())).await;
    running.scans(3).await;
    assert_eq!(fixture.servers.holders(), uids[5..], "the living keep their addresses");
    for (uid, gone) in fixture.servers.facts() {
        assert!(uids[..5].contains(&uid) && evidence.contains(&gone.as_str()), "{uid} {gone}");
    }
}

#[tokio::test]
async fn a_dropped_watch_resumes() {
    deleted_during(&[Fault::DropWatches], &[], &["deleted"]).await;
}

#[tokio::test]
async fn forgotten_versions_lead_to_scans() {
    // The deletions are in no list and in no watch.
    deleted_during(&[Fault::Freeze], &[Fault::Compact, Fault::DropWatches, Fault::Thaw], &["absent"]).await;
}

#[tokio::test]
async fn a_frozen_watch_delays_facts() {
    deleted_during(&[Fault::Freeze], &[Fault::Thaw], &["deleted"]).await;
}

#[tokio::test]
async fn errors_of_the_api_server_delay_facts() {
    let fail = |code| Fault::Fail { code, count: 20, retry_after: Some(1) };
    deleted_during(&[fail(429), Fault::DropWatches], &[Fault::Heal], &["deleted"]).await;
    deleted_during(&[fail(500), Fault::DropWatches], &[Fault::Heal], &["deleted"]).await;
}

#[tokio::test]
async fn a_stale_list_frees_nothing_that_lives() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.cluster.fault(Fault::Stale);
    // These pods are in no list, and the frozen watch does not show them either.
    let uids: Vec<String> = (0..10).map(|number| fixture.pod(&format!("web-{number}"), "n1")).collect();
    fixture.cluster.fault(Fault::Freeze);
    let mut running = fixture.synced().await;
    let status = running.until(|status| status.refuted >= 10).await;
    assert_eq!(status.counts.pods, 0);
    assert_eq!(fixture.servers.facts(), []);
    fixture.cluster.fault(Fault::Fresh);
    fixture.cluster.fault(Fault::Thaw);
    running.until(|status| status.counts.pods == 10).await;
    running.scans(3).await;
    assert_eq!(fixture.servers.holders(), uids);
}

#[tokio::test]
async fn deletions_during_an_outage_of_the_api_server_are_found_afterwards() {
    let mut fixture = Fixture::new();
    fixture.node("n1");
    let uids: Vec<String> = (0..250).map(|number| fixture.pod(&format!("web-{number}"), "n1")).collect();
    let mut running = fixture.synced().await;
    fixture.cluster.stop();
    for number in 0..200 {
        fixture.remove_pod(&format!("web-{number}"));
    }
    fixture.cluster.fault(Fault::Compact);
    running.scans(3).await;
    assert_eq!(fixture.servers.facts(), [], "no facts, no reclaim");
    fixture.cluster.restart();
    fixture.servers.until("the release", |servers| (servers.holders() == uids[200..]).then_some(())).await;
    running.scans(3).await;
    assert_eq!(fixture.servers.holders(), uids[200..], "the living keep their addresses");
    let facts = fixture.servers.facts();
    assert!(facts.len() == 200 && facts.iter().all(|(_, gone)| gone == "absent"));
}

#[tokio::test]
async fn nothing_is_sent_before_pods_and_nodes_are_listed() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.servers.hold(crate::fixture::endpoint("pod", "web-9", "old", serde_json::Value::Null));
    fixture.servers.attach("n9", 7);
    fixture.cluster.fault(Fault::Forbid { verb: "list", plural: "nodes" });
    fixture.pod("web-0", "n1");
    let mut running = fixture.start();
    running.until(|status| status.counts.pods == 1).await;
    fixture.remove_pod("web-0");
    running.until(|status| status.counts.pods == 0 && status.waiting == 1).await;
    assert!(!running.status.borrow().synced);
    let mut sent = fixture.servers.sent("/");
    // Reports free no address.
    sent.retain(|sent| sent.path != "/v1/pods");
    assert_eq!(sent, [], "not even a deletion that was watched");
    fixture.cluster.fault(Fault::Heal);
    fixture.servers.until("the releases", |servers| servers.holders().is_empty().then_some(())).await;
    drop(running);
    // The next leader has no view yet.
    let sent = fixture.servers.sent("/v1/workloads").len();
    fixture.servers.hold(crate::fixture::endpoint("pod", "web-8", "old", serde_json::Value::Null));
    fixture.cluster.fault(Fault::Forbid { verb: "list", plural: "pods" });
    let mut running = fixture.start();
    running.until(|status| status.counts.nodes == 1 && status.error.is_some()).await;
    assert_eq!((fixture.servers.sent("/v1/workloads").len(), running.status.borrow().scans), (sent, 0));
}

#[tokio::test]
async fn a_refused_quorum_read_is_no_evidence() {
    for fault in [
        Fault::Forbid { verb: "get", plural: "pods" },
        Fault::Fail { code: 500, count: usize::MAX, retry_after: None },
    ] {
        let fixture = Fixture::new();
        fixture.node("n1");
        let mut running = fixture.synced().await;
        fixture.cluster.fault(Fault::Freeze);
        // The frozen watch does not show this pod.
        let alive = fixture.pod("web-0", "n1");
        fixture.cluster.fault(fault);
        running.until(|status| status.absent == 1).await;
        running.scans(4).await;
        assert_eq!((fixture.servers.facts(), fixture.servers.holders()), (vec![], vec![alive]));
    }
}

#[tokio::test]
async fn a_list_without_a_node_leaves_its_mirror_and_addresses() {
    let fixture = Fixture::new();
    fixture.node("n1");
    fixture.cluster.fault(Fault::Stale);
    fixture.node("n2");
    fixture.servers.attach("n2", 7);
    let mut running = fixture.synced().await;
    fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n2")).await;
    fixture.cluster.fault(Fault::Compact);
    fixture.cluster.fault(Fault::DropWatches);
    running.until(|status| status.counts.nodes == 1).await;
    running.scans(4).await;
    assert!(fixture.servers.resource("/v1/nodes/prod/n2").is_some());
    assert_eq!(fixture.servers.change(|model| model.attachments["n2"].len()), 1);
    fixture.cluster.fault(Fault::Fresh);
    running.until(|status| status.counts.nodes == 2).await;
}
