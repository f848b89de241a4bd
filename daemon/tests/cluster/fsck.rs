//! Findings of `ipamctl fsck` about agents, planted in real members, and their corrections.

use ipam_api::client::{Call, Client};
use ipam_api::node_report::{HeartbeatAnswer, Inventory, InventoryDigest};
use serde_json::{Value, json};

use crate::cluster::access::add;
use crate::cluster::command_line::ipamctl;
use crate::cluster::node_agent::heartbeat;
use crate::support::ask::{allocations, make_pools};
use crate::support::{Cluster, LONG};

/// Kind and node of each finding.
async fn findings(servers: &[String]) -> Vec<(String, String)> {
    let found = ipamctl(servers, "fsck -o json").await;
    let report = found.json();
    let items = report["items"].as_array().unwrap();
    found.ends(if items.is_empty() { 0 } else { 7 });
    let of = |one: &Value| {
        (one["kind"].as_str().unwrap().to_owned(), one["node"]["name"].as_str().unwrap().to_owned())
    };
    items.iter().map(of).collect()
}

async fn hear(client: &Client, node: &str, ready: bool, inventory: &InventoryDigest) {
    let call = heartbeat(node, 1, ready, inventory).repeatable();
    let _: HeartbeatAnswer = client.call(call).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_mismatches_of_agents_are_found_and_end_with_their_corrections() {
    let cluster = Cluster::up(1).await;
    let (client, servers) = (cluster.ask(), cluster.urls());
    make_pools(&client).await;
    assert_eq!(findings(&servers).await, []);
    // The agent of n1 was never heard, that of n2 is not ready, and that of n3 has an attachment too many.
    let call = Call::post("/v1/allocations").json(&add("n1", "c1")).unwrap().repeatable().within(LONG);
    let _: Value = client.call(call).await.unwrap();
    let empty = Inventory::default().digest();
    hear(&client, "n2", false, &empty).await;
    let other = InventoryDigest { attachments: 1, digest: "0123456789abcdef".to_owned() };
    hear(&client, "n3", true, &other).await;
    let mut found = findings(&servers).await;
    found.sort();
    let expected = [("agent-not-ready", "n2"), ("inventory", "n3"), ("no-agent", "n1")];
    assert_eq!(found, expected.map(|(kind, node)| (kind.to_owned(), node.to_owned())));
    // None of them has an action of its own.
    let report = ipamctl(&servers, "fsck -o json").await.json();
    assert!(report["items"].as_array().unwrap().iter().all(|one| one["action"] == json!({"type": "none"})));
    ipamctl(&servers, "node gone default/n1 --yes").await.ends(0);
    assert!(allocations(&client).await.is_empty());
    for node in ["n2", "n3"] {
        hear(&client, node, true, &empty).await;
    }
    assert_eq!(findings(&servers).await, []);
}
