//! Outages of `ipamd`: a provider in a process of its own tells the claims, and serves them afterwards.

use std::time::Instant;

use serde_json::json;

use super::management::{Management, unique};
use super::process::Provider;
use super::scene::{Scene, ready};
use crate::support::Cluster;

/// Waits until new claims show the outage; returns the messages.
async fn told(scene: &Scene, names: &[&str]) -> Vec<String> {
    let mut messages = Vec::new();
    for name in names {
        messages.push(scene.reason("ipaddressclaims", name, "AllocationFailed").await);
    }
    messages
}

/// True if a fulfilled claim shows nothing of an outage.
async fn is_served(scene: &Scene, name: &str) -> bool {
    let claim = scene.get("ipaddressclaims", name).await.unwrap();
    ready(&claim).0 == "True" && claim["status"]["addressRef"]["name"] == name
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_10_claims_of_an_outage_tell_it_and_are_served_after_it() {
    let (cluster, management) = (Cluster::up(3).await, Management::start().await);
    let mut scene = Scene { cluster, management, realm: unique("fleet") };
    let mut provider = Provider::of(&scene);
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    for (name, address) in [("before", "10.0.0.10/24"), ("deleted", "10.0.0.11/24")] {
        scene.claim(name, "web").await;
        assert_eq!(scene.fulfilled(name).await, address);
    }

    let leader = scene.cluster.leader().await;
    for at in [leader, (leader + 1) % 3] {
        scene.cluster.members[at].kill();
    }
    let begun = Instant::now();
    scene.claim("new", "web").await;
    // A pool of the outage isn't applied.
    scene.pool("late", json!({"addresses": ["10.1.0.10"], "prefix": 24})).await;
    scene.claim("late", "late").await;
    scene.delete("ipaddressclaims", "deleted").await;
    let messages = told(&scene, &["new", "late"]).await;
    println!("c5_10: without a leader: {messages:?} after {} ms", begun.elapsed().as_millis());
    assert!(messages.iter().all(|message| message.contains("no member leads")), "{messages:?}");
    // What is fulfilled stays so: an object that is deleted by hand comes back even now.
    assert!(is_served(&scene, "before").await);
    let former = scene.get("ipaddresses", "before").await.unwrap();
    scene.delete("ipaddresses", "before").await;
    crate::support::until("the address is back", async || match scene.get("ipaddresses", "before").await {
        Some(back) if back["metadata"]["uid"] != former["metadata"]["uid"] => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;

    // No member at all, and a provider that begins in the outage.
    scene.cluster.kill_all();
    drop(provider);
    provider = Provider::of(&scene);
    scene.claim("dark", "web").await;
    let messages = told(&scene, &["dark"]).await;
    println!("c5_10: without members: {messages:?} after {} ms", begun.elapsed().as_millis());
    assert!(is_served(&scene, "before").await);
    assert!(scene.get("ipaddressclaims", "deleted").await.is_some(), "nothing is released in an outage");

    scene.cluster.start_all();
    scene.cluster.ready().await;
    let begun = Instant::now();
    for name in ["new", "dark", "late", "before"] {
        scene.fulfilled(name).await;
        println!("c5_10: {name} is served {} ms after the outage", begun.elapsed().as_millis());
    }
    scene.gone("ipaddressclaims", "deleted").await;
    let addresses = scene.addresses().await;
    assert_eq!((addresses.len(), addresses["before"].as_str()), (4, "10.0.0.10"), "{addresses:?}");
    drop(provider);
}
