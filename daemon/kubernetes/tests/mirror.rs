//! Mirrors of nodes and namespaces.

use ipam_api::Code;
use serde_json::{Value, json};
use test_apiserver::Fault;

use crate::fixture::{Fixture, node};

const STATE: &str = "ipamd.internal/kubernetes-state";

#[tokio::test]
async fn labels_and_readiness_of_nodes_are_mirrored_and_their_changes() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let _running = fixture.synced().await;
    let servers = &fixture.servers;
    let is = |zone: &'static str, state: &'static str| {
        move |servers: &crate::fixture::Recorder| {
            let row = servers.resource("/v1/nodes/prod/n1")?;
            (row["labels"]["zone"] == zone && row["annotations"][STATE] == state).then_some(row)
        }
    };
    let row = servers.until("the node", is("a", "ready")).await;
    assert_eq!(row["managed_by"], "kubernetes/prod");
    fixture.cluster.put("/api/v1/nodes", node("n1", "True", json!({"zone": "b"})));
    servers.until("another label", is("b", "ready")).await;
    fixture.cluster.put("/api/v1/nodes", node("n1", "False", json!({"zone": "b"})));
    servers.until("another state", is("b", "not-ready")).await;
    let writes = servers.sent("/v1/nodes").len();
    fixture.cluster.put("/api/v1/nodes", node("n1", "False", json!({"zone": "b"})));
    fixture.node("n2");
    servers.until("the next node", |servers| servers.resource("/v1/nodes/prod/n2")).await;
    assert_eq!(servers.sent("/v1/nodes").len(), writes + 1, "a node without a difference is not written");
}

#[tokio::test]
async fn labels_and_default_pools_of_namespaces_are_mirrored() {
    let fixture = Fixture::new();
    let namespace = |pools: Value| {
        json!({"metadata": {"name": "shop", "labels": {"team": "web"},
                            "annotations": {"ipam.spidernet.io/default-ipv4-ippool": pools}}})
    };
    fixture.cluster.put("/api/v1/namespaces", namespace(json!("[\"a\",\"b\"]")));
    let mut running = fixture.synced().await;
    let servers = &fixture.servers;
    let row = servers.until("the namespace", |servers| servers.resource("/v1/namespaces/prod/shop")).await;
    assert_eq!((&row["labels"]["team"], &row["default_ipv4_pools"]), (&json!("web"), &json!(["a", "b"])));
    fixture.cluster.put("/api/v1/namespaces", namespace(json!("malformed")));
    running.until(|status| status.refused.contains_key(&Code::InvalidField)).await;
    let row = servers.resource("/v1/namespaces/prod/shop").unwrap();
    assert_eq!(row["default_ipv4_pools"], json!(["a", "b"]), "the former pools stay");
    assert!(fixture.cluster.remove("/api/v1/namespaces/shop"));
    servers
        .until("the end", |servers| servers.resource("/v1/namespaces/prod/shop").is_none().then_some(()))
        .await;
}

#[tokio::test]
async fn resources_of_another_manager_are_left_alone() {
    let fixture = Fixture::new();
    fixture.node("n1");
    let own = json!({"realm": "prod", "name": "n1", "managed_by": "terraform"});
    fixture.servers.change(|model| model.resources.insert("/v1/nodes/prod/n1".to_owned(), (own.clone(), 1)));
    let mut running = fixture.synced().await;
    running.until(|status| status.refused.contains_key(&Code::ManagedElsewhere)).await;
    fixture.cluster.remove("/api/v1/nodes/n1");
    fixture.node("n2");
    fixture.servers.until("another node", |servers| servers.resource("/v1/nodes/prod/n2")).await;
    assert_eq!(fixture.servers.resource("/v1/nodes/prod/n1"), Some(own));
}

#[tokio::test]
async fn hostile_labels_and_answers_do_no_harm() {
    let fixture = Fixture::new();
    let mut labels: serde_json::Map<String, Value> =
        (0..3000).map(|number| (format!("l{number:04}"), json!("v"))).collect();
    labels.insert("long".to_owned(), json!("x".repeat(100_000)));
    fixture.cluster.put("/api/v1/nodes", node("n1", "True", Value::Object(labels)));
    fixture.cluster.fault(Fault::Hostile(test_apiserver::Hostility::Endless(vec![b'x'; 1 << 20])));
    let mut running = fixture.start();
    running.until(|status| status.error.is_some()).await;
    fixture.cluster.fault(Fault::Heal);
    running.until(|status| status.synced).await;
    let row = fixture.servers.until("the node", |servers| servers.resource("/v1/nodes/prod/n1")).await;
    assert_eq!(row["labels"].as_object().unwrap().len(), ipam_api::limits::LABELS_MAX);
}

#[tokio::test]
async fn writes_are_repeated_until_the_servers_answer() {
    // No scan compares the mirror meanwhile.
    let mut fixture = Fixture::new();
    fixture.interval = std::time::Duration::from_secs(3600);
    fixture.node("n1");
    let _running = fixture.synced().await;
    fixture.servers.until("the mirror", |servers| servers.resource("/v1/nodes/prod/n1")).await;
    fixture.servers.change(|model| model.refused_writes = 2);
    fixture.node("n2");
    fixture.servers.until("the next node", |servers| servers.resource("/v1/nodes/prod/n2")).await;
}
