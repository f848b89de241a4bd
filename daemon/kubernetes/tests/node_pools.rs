//! Pools of host addresses: what is applied, and each reason of the condition `Available`.

use std::time::Duration;

use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::fixture::{Fixture, ONCE, Recorder};

const TRAFFIC: &str = "/v1/pools/traffic-1";
/// Interval of statuses for tests that wait for several.
const SOON: Duration = Duration::from_millis(50);

fn range() -> Value {
    json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10",
           "exclude": ["10.10.10.4", "10.10.10.7"]})
}

fn allocation(address: &str) -> Value {
    json!({
        "id": 1, "address": format!("{address}/24"), "network": "default", "subnet": "traffic-1",
        "pool": "traffic-1", "interface": "eth1", "node": "n1", "lifecycle": "held", "checked": false,
        "endpoint": {"realm": "prod", "kind": "host", "namespace": "static-ip", "name": "n1"},
        "created_at": "2026-01-01T00:00:00Z", "created_by": "x",
    })
}

fn hold(fixture: &Fixture, addresses: &[&str]) {
    fixture.servers.change(|model| {
        model.allocations = addresses.iter().map(|address| allocation(address)).collect();
        model.held.insert(TRAFFIC.to_owned(), addresses.len() as u64);
    });
}

/// Number of writes of pools and subnets.
fn writes(fixture: &Fixture) -> usize {
    ["/v1/pools", "/v1/subnets"].into_iter().map(|path| fixture.servers.sent(path).len()).sum()
}

async fn reason(fixture: &Fixture, name: &str, reason: &str) -> Value {
    let status = fixture.ready("nodeippools", name, reason).await;
    assert_eq!(status["conditions"][0]["type"], "Available");
    status
}

#[tokio::test]
async fn n5_1_an_object_is_a_subnet_and_a_pool_and_shows_offsets() {
    let fixture = Fixture::with_custom_resources(SOON);
    hold(&fixture, &["10.10.10.8", "10.10.10.1", "10.10.10.2", "10.10.10.3", "10.10.10.5", "10.10.10.6"]);
    fixture.node_pool("traffic-1", range());
    let _running = fixture.synced().await;
    let status = reason(&fixture, "traffic-1", "ReconciledPool").await;
    assert_eq!(status["allocatedOffsets"], json!([0, 1, 2, 4, 5, 7]));
    assert_eq!(status["conditions"][0]["status"], "True");
    let pool = fixture.servers.resource(TRAFFIC).unwrap();
    assert_eq!(pool["ranges"], json!(["10.10.10.1-10.10.10.10"]));
    assert_eq!(pool["exclude"], json!(["10.10.10.4", "10.10.10.7"]));
    assert_eq!(pool["managed_by"], "node-ip-pools/prod");
    assert_eq!(fixture.servers.resource("/v1/subnets/traffic-1").unwrap()["cidr"], "10.10.10.0/24");
}

#[tokio::test]
async fn n5_3_reconciling_unsynchronized_and_reconciled_follow_the_servers() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.servers.change(|model| model.failing = usize::MAX);
    fixture.node_pool("traffic-1", range());
    let _running = fixture.synced().await;
    let status = reason(&fixture, "traffic-1", "ReconcilingPool").await;
    assert_eq!(status["conditions"][0]["status"], "Unknown");
    let status = reason(&fixture, "traffic-1", "UnsyncronizedIPPool").await;
    assert_eq!(status["conditions"][0]["status"], "False");
    fixture.servers.change(|model| model.failing = 0);
    reason(&fixture, "traffic-1", "ReconciledPool").await;
}

#[tokio::test]
async fn n5_3_exhausted_and_collision_are_conditions_of_the_pool() {
    let fixture = Fixture::with_custom_resources(SOON);
    let all: Vec<String> = (1..=10).map(|last| format!("10.10.10.{last}")).collect();
    hold(&fixture, &all.iter().map(String::as_str).collect::<Vec<_>>());
    fixture.node_pool("traffic-1", range());
    let _running = fixture.synced().await;
    let status = reason(&fixture, "traffic-1", "ExhaustedIPPool").await;
    assert_eq!(status["conditions"][0]["status"], "False");
    hold(&fixture, &["10.10.10.8"]);
    fixture.servers.change(|model| {
        model.allocations[0]["colliding"] = json!("02:00:00:00:00:09");
        let condition = json!({"type": "IPCollision", "status": "True", "reason": "TwoStations",
                               "message": "m", "since": "2026-01-01T00:00:00Z"});
        model.conditions.insert(TRAFFIC.to_owned(), condition);
    });
    let status = reason(&fixture, "traffic-1", "IPCollision").await;
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("The IP address 10.10.10.8 at node n1 and interface eth1"), "{message}");
}

#[tokio::test]
async fn n5_3_an_overlap_names_the_other_object() {
    let fixture = Fixture::with_custom_resources(SOON);
    let refusal = Problem::new(Code::Overlap, "10.10.10.1-10.10.10.10 overlaps with pool traffic-1");
    fixture.servers.change(|model| model.refusals.insert("/v1/pools/traffic-2".to_owned(), refusal));
    fixture.node_pool("traffic-1", range());
    fixture.node_pool("traffic-2", range());
    let _running = fixture.synced().await;
    let status = reason(&fixture, "traffic-2", "OverlappingIPPool").await;
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("The NodeIPPool traffic-1 is overlapping with this one."), "{message}");
    reason(&fixture, "traffic-1", "ReconciledPool").await;
    assert!(fixture.servers.resource("/v1/subnets/traffic-2").is_none(), "it shares the subnet");
}

#[tokio::test]
async fn n5_5_a_pool_that_is_created_again_larger_keeps_its_addresses() {
    let fixture = Fixture::with_custom_resources(SOON);
    hold(&fixture, &["10.10.10.8"]);
    fixture.node_pool("traffic-1", range());
    let _running = fixture.synced().await;
    reason(&fixture, "traffic-1", "ReconciledPool").await;
    fixture.remove_custom("nodeippools", "traffic-1");
    let is_ending = |servers: &Recorder| (servers.resource(TRAFFIC)?["terminating"] == true).then_some(());
    fixture.servers.until("the pool ends", is_ending).await;
    let larger = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.99"});
    fixture.node_pool("traffic-1", larger);
    let status = reason(&fixture, "traffic-1", "ReconciledPool").await;
    assert_eq!(status["allocatedOffsets"], json!([7]));
    let pool = fixture.servers.resource(TRAFFIC).unwrap();
    assert_eq!((&pool["terminating"], &pool["ranges"]), (&json!(false), &json!(["10.10.10.1-10.10.10.99"])));
}

#[tokio::test]
async fn n5_8_a_reset_compares_the_pool_once_and_changes_no_address() {
    for annotation in ["ipamd.internal/reset", "nmstate.io/reset-ippool"] {
        let fixture = Fixture::with_custom_resources(ONCE);
        hold(&fixture, &["10.10.10.8"]);
        fixture.node_pool("traffic-1", range());
        let mut running = fixture.synced().await;
        reason(&fixture, "traffic-1", "ReconciledPool").await;
        let writes = writes(&fixture);
        // The servers are unavailable, so the status while the object is compared becomes visible.
        fixture.servers.change(|model| model.failing = usize::MAX);
        fixture.annotate("nodeippools", "traffic-1", annotation, Some("1"));
        let status = reason(&fixture, "traffic-1", "ReconcilingPool").await;
        assert_eq!(status["allocatedOffsets"], json!([7]), "offsets stay meanwhile");
        hold(&fixture, &["10.10.10.8", "10.10.10.9"]);
        fixture.servers.change(|model| model.failing = 0);
        let status = fixture
            .status_of("nodeippools", "traffic-1", |status| {
                status["observedReset"] == "1" && status["conditions"][0]["reason"] == "ReconciledPool"
            })
            .await;
        assert_eq!(status["allocatedOffsets"], json!([7, 8]));
        let patches = fixture.patches();
        let before = running.status.borrow().node_pools_compared;
        running.until(|status| status.node_pools_compared >= before + 3).await;
        assert_eq!(fixture.patches(), patches, "a value is handled once");
        assert_eq!(self::writes(&fixture), writes, "nothing is written to the servers");
    }
}

#[tokio::test]
async fn an_unreadable_object_is_refused_with_its_field() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.node_pool("traffic-2", json!({"cidr": "10.10.11.0/24", "end": "10.10.10.11.10"}));
    let _running = fixture.synced().await;
    let status = reason(&fixture, "traffic-2", "UnsyncronizedIPPool").await;
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("/range/end: 10.10.10.11.10 has five octets"), "{message}");
    fixture.node_pool("traffic-2", json!({"cidr": "10.10.11.0/24", "end": "10.10.11.10"}));
    reason(&fixture, "traffic-2", "ReconciledPool").await;
}

#[tokio::test]
async fn objects_that_went_while_no_watcher_ran_end_their_pools_and_others_are_left_alone() {
    let fixture = Fixture::with_custom_resources(SOON);
    fixture.node_pool("traffic-1", range());
    let running = fixture.synced().await;
    reason(&fixture, "traffic-1", "ReconciledPool").await;
    drop(running);
    fixture.remove_custom("nodeippools", "traffic-1");
    let own = json!({"name": "traffic-2", "subnet": "lan", "managed_by": "terraform"});
    fixture.servers.change(|model| model.resources.insert("/v1/pools/traffic-2".to_owned(), (own, 1)));
    fixture.node_pool("traffic-2", json!({"cidr": "10.10.11.0/24"}));
    let _running = fixture.synced().await;
    let is_gone = |servers: &Recorder| servers.resource("/v1/subnets/traffic-1").is_none().then_some(());
    fixture.servers.until("the subnet is gone", is_gone).await;
    assert!(fixture.servers.resource(TRAFFIC).is_none());
    let status = reason(&fixture, "traffic-2", "UnsyncronizedIPPool").await;
    assert!(status["conditions"][0]["message"].as_str().unwrap().contains("is managed by terraform"));
    assert_eq!(fixture.servers.resource("/v1/pools/traffic-2").unwrap()["managed_by"], "terraform");
}
