//! Faults around custom resources: nothing ends without evidence.

use std::time::Duration;

use serde_json::json;
use test_apiserver::{Fault, Hostility};

use crate::fixture::{Fixture, ONCE};

const WEB: &str = "/v1/pools/web";
const SOON: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_resource_whose_object_went_unwatched_ends_after_two_scans_and_a_quorum_read() {
    let fixture = Fixture::with_custom_resources(SOON);
    for name in ["web", "old"] {
        let own = json!({"name": name, "subnet": "lan", "managed_by": "kubernetes/prod"});
        let path = format!("/v1/pools/{name}");
        fixture.servers.change(|model| model.resources.insert(path, (own, 1)));
    }
    fixture.pool("web");
    let _running = fixture.synced().await;
    let is_gone =
        |servers: &crate::fixture::Recorder| servers.resource("/v1/pools/old").is_none().then_some(());
    fixture.servers.until("the end", is_gone).await;
    assert!(fixture.servers.resource(WEB).is_some());
    let gets = fixture.cluster.requests().into_iter().filter(|request| request.verb == "get");
    assert_eq!(gets.count(), 1, "one read");
}

#[tokio::test]
async fn a_stale_list_and_a_refused_read_end_nothing() {
    for fault in [
        Fault::Forbid { verb: "get", plural: "pools" },
        Fault::Fail { code: 500, count: usize::MAX, retry_after: None },
        Fault::Fresh,
    ] {
        let fixture = Fixture::with_custom_resources(SOON);
        let own = json!({"name": "web", "subnet": "lan", "managed_by": "kubernetes/prod"});
        fixture.servers.change(|model| model.resources.insert(WEB.to_owned(), (own, 1)));
        fixture.cluster.fault(Fault::Stale);
        fixture.pool("web");
        fixture.cluster.fault(Fault::Freeze);
        let mut running = fixture.synced().await;
        running.compared(1).await;
        fixture.cluster.fault(fault);
        running.compared(10).await;
        assert!(fixture.servers.resource(WEB).is_some());
        assert!(fixture.servers.sent("/v1/pools").is_empty());
    }
}

#[tokio::test]
async fn an_api_server_that_is_away_changes_nothing() {
    let mut fixture = Fixture::with_custom_resources(SOON);
    fixture.pool("web");
    let mut running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    fixture.cluster.stop();
    // There may be several requests, if the machine was slow and the client repeated the request.
    let sent = fixture.servers.sent("/v1/pools").len();
    fixture.remove_custom("pools", "web");
    fixture.pool("db");
    fixture.cluster.fault(Fault::Compact);
    running.compared(4).await;
    assert_eq!(fixture.servers.sent("/v1/pools").len(), sent);
    fixture.cluster.restart();
    fixture.servers.until("the new pool", |servers| servers.resource("/v1/pools/db")).await;
    let is_gone = |servers: &crate::fixture::Recorder| servers.resource(WEB).is_none().then_some(());
    fixture.servers.until("the end of the deleted one", is_gone).await;
}

#[tokio::test]
async fn missing_definitions_hinder_nothing_and_count_once_they_are_installed() {
    let mut fixture = Fixture::new();
    fixture.status_interval = Some(ONCE);
    fixture.node("n1");
    let _running = fixture.synced().await;
    fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n1")).await;
    fixture.define();
    fixture.pool("web");
    fixture.ready("pools", "web", "Serving").await;
}

#[tokio::test]
async fn a_refused_status_is_written_later() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.cluster.fault(Fault::Forbid { verb: "patch", plural: "pools" });
    fixture.pool("web");
    let mut running = fixture.synced().await;
    fixture.servers.until("the pool", |servers| servers.resource(WEB)).await;
    running.until(|status| status.error.is_some()).await;
    fixture.cluster.fault(Fault::Heal);
    fixture.ready("pools", "web", "Serving").await;
}

#[tokio::test]
async fn a_status_of_another_writer_is_replaced() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.pool("web");
    let _running = fixture.synced().await;
    fixture.ready("pools", "web", "Serving").await;
    let mut object = fixture.object("pools", "web").unwrap();
    object["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Invented"}]});
    fixture.cluster.put("/apis/ipamd.internal/v1/pools", object);
    fixture.ready("pools", "web", "Serving").await;
}

#[tokio::test]
async fn writes_are_repeated_until_the_servers_answer() {
    let fixture = Fixture::with_custom_resources(ONCE);
    let mut running = fixture.synced().await;
    running.compared(1).await;
    fixture.servers.change(|model| model.failing = 5);
    fixture.pool("web");
    fixture.ready("pools", "web", "Serving").await;
}

#[tokio::test]
async fn endless_answers_to_a_write_of_a_status_do_no_harm() {
    let fixture = Fixture::with_custom_resources(SOON);
    let mut running = fixture.synced().await;
    running.compared(1).await;
    // A watch that began after the fault would never report the pool.
    fixture.watched(["subnets", "pools", "reservations"]).await;
    fixture.cluster.fault(Fault::Freeze);
    fixture.pool("web");
    fixture.cluster.fault(Fault::Hostile(Hostility::Endless(vec![b'x'; 1 << 20])));
    fixture.cluster.fault(Fault::Thaw);
    fixture.servers.until("the pool", |servers| servers.resource(WEB)).await;
    running.until(|status| status.error.is_some()).await;
    fixture.cluster.fault(Fault::Heal);
    fixture.ready("pools", "web", "Serving").await;
}
