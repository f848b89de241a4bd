//! Nodes that are gone, and nodes that are not ready.

use serde_json::json;

use super::scene::Scene;

/// Pods of a node.
const PODS: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_9_a_deleted_node_frees_its_addresses_and_a_node_that_is_not_ready_frees_none() {
    let scene = Scene::start(3).await;
    for node in ["n2", "n3"] {
        scene.node(node, json!({}), true);
    }
    scene.synced().await;
    for node in ["n1", "n2", "n3"] {
        for number in 0..PODS {
            scene.attached(&format!("{node}-{number}"), node, json!({}), json!({})).await;
        }
    }
    let others = scene.holders().await.into_iter().filter(|name| !name.starts_with("n1-")).collect();
    scene.node("n2", json!({}), false);
    assert!(scene.api.remove("/api/v1/nodes/n1"));
    scene.only(&others).await;
    scene.scans(3).await;
    assert_eq!(scene.holders().await, others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_registered_anew_keeps_its_addresses() {
    let mut scene = Scene::start(1).await;
    scene.synced().await;
    scene.attached("web", "n1", json!({}), json!({})).await;
    // The watch reports neither its end nor its return.
    scene.api.stop();
    assert!(scene.api.remove("/api/v1/nodes/n1"));
    scene.node("n1", json!({}), true);
    scene.api.restart();
    scene.scans(3).await;
    assert_eq!(scene.holders().await.len(), 1);
}
