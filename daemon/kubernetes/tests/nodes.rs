//! Deleted nodes.

use serde_json::json;
use test_apiserver::Fault;

use crate::fixture::{Fixture, node};

fn on_two_nodes() -> Fixture {
    let fixture = Fixture::new();
    for name in ["n1", "n2"] {
        fixture.node(name);
    }
    for allocation in 0..50 {
        fixture.servers.attach("n1", allocation);
        fixture.servers.attach("n2", 100 + allocation);
    }
    fixture
}

fn attached(fixture: &Fixture, node: &str) -> usize {
    fixture.servers.change(|model| model.attachments[node].len())
}

#[tokio::test]
async fn a_deleted_node_loses_its_addresses_and_no_other() {
    let fixture = on_two_nodes();
    let _running = fixture.synced().await;
    fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n1")).await;
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    let is_over = |_: &crate::fixture::Recorder| (attached(&fixture, "n1") == 0).then_some(());
    fixture.servers.until("the release", is_over).await;
    let ended = fixture.servers.until("the mirror's end", |servers| {
        let deleted = |sent: &&crate::fixture::Sent| sent.method == "DELETE";
        servers.sent("/v1/nodes").iter().find(deleted).cloned()
    });
    assert_eq!(ended.await.path, "/v1/nodes/prod/n1?manager=kubernetes%2Fprod");
    assert_eq!(attached(&fixture, "n2"), 50);
}

#[tokio::test]
async fn a_node_that_is_not_ready_keeps_its_addresses() {
    let fixture = on_two_nodes();
    let mut running = fixture.synced().await;
    fixture.cluster.put("/api/v1/nodes", node("n1", "Unknown", json!({})));
    running.scans(4).await;
    assert_eq!((attached(&fixture, "n1"), attached(&fixture, "n2")), (50, 50));
}

#[tokio::test]
async fn a_node_that_went_unwatched_is_gone_after_two_scans_and_a_quorum_read() {
    let fixture = on_two_nodes();
    {
        let _running = fixture.synced().await;
        fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n1")).await;
    }
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    let _running = fixture.synced().await;
    let is_over = |_: &crate::fixture::Recorder| (attached(&fixture, "n1") == 0).then_some(());
    fixture.servers.until("the release", is_over).await;
    assert_eq!(attached(&fixture, "n2"), 50);
}

#[tokio::test]
async fn a_node_that_returns_keeps_its_addresses() {
    let fixture = on_two_nodes();
    let mut running = fixture.synced().await;
    fixture.servers.change(|model| model.heard.push("n1".to_owned()));
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    let refused = |servers: &crate::fixture::Recorder| {
        (!servers.sent("/v1/nodes/prod/n1/reclaim").is_empty()).then_some(())
    };
    fixture.servers.until("an attempt", refused).await;
    // The watch lags behind: only the quorum read shows the new node.
    fixture.cluster.fault(Fault::Freeze);
    fixture.node("n1");
    fixture.servers.change(|model| model.heard.clear());
    running.scans(4).await;
    assert_eq!(attached(&fixture, "n1"), 50);
}

#[tokio::test]
async fn a_node_loses_nothing_before_the_pods_are_listed() {
    let fixture = on_two_nodes();
    fixture.cluster.fault(Fault::Forbid { verb: "list", plural: "pods" });
    let mut running = fixture.start();
    running.until(|status| status.counts.nodes == 2).await;
    assert!(fixture.cluster.remove("/api/v1/nodes/n1"));
    running.until(|status| status.counts.nodes == 1).await;
    // A later request of another task shows that this task has run.
    fixture.node("n3");
    fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n3")).await;
    assert_eq!(attached(&fixture, "n1"), 50);
    fixture.cluster.fault(Fault::Heal);
    let is_over = |_: &crate::fixture::Recorder| (attached(&fixture, "n1") == 0).then_some(());
    fixture.servers.until("the release", is_over).await;
}
