//! Addresses of pods that are gone, under faults of the API server and of the leader.

use std::collections::BTreeSet;

use ipam_api::time::Timestamp;
use serde_json::json;
use test_apiserver::Fault;

use super::scene::{Scene, names};

/// Time of the API server during its outage.
const OUTAGE_MS: u64 = 600_000;
/// Pods of the tests with many.
const PODS: usize = 250;
/// Pods of them that are deleted.
const DELETED: usize = 200;

/// Creates pods with addresses; returns the names of those that are to live, and of those that are not.
async fn populate(scene: &Scene) -> (BTreeSet<String>, Vec<String>) {
    let all: Vec<String> = (0..PODS).map(|number| format!("web-{number:03}")).collect();
    for name in &all {
        scene.attached(name, "n1", json!({}), json!({})).await;
    }
    let (deleted, living) = all.split_at(DELETED);
    (living.iter().cloned().collect(), deleted.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_pod_loses_its_address_and_a_newer_one_of_the_name_keeps_its_own() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    scene.attached("web", "n1", json!({}), json!({})).await;
    scene.attached("other", "n1", json!({}), json!({})).await;
    scene.delete_pod("web");
    scene.only(&names(&["other"])).await;
    scene.delete_pod("other");
    scene.attached("other", "n2", json!({}), json!({})).await;
    scene.scans(3).await;
    let held = scene.held().await;
    assert!(held.len() == 1 && held[0].node.as_ref().is_some_and(|node| node.as_str() == "n2"), "{held:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_5_an_api_server_that_is_away_loses_no_address_of_the_living_and_leaks_none() {
    let mut scene = Scene::start(3).await;
    scene.synced().await;
    let (living, deleted) = populate(&scene).await;
    scene.api.stop();
    // What happens meanwhile has no watch and no request.
    for name in &deleted {
        scene.delete_pod(name);
    }
    let leader = scene.cluster.leader().await;
    scene.cluster.members[leader].kill();
    let held = scene.holders().await;
    assert_eq!(held.len(), PODS, "without facts nothing is freed");
    scene.cluster.start(leader);
    scene.cluster.ready().await;
    // It was away for ten minutes of its time, and has no versions from before.
    scene.api.set_clock(&Timestamp(Timestamp::now().0 + OUTAGE_MS).to_string());
    scene.api.fault(Fault::Compact);
    scene.api.restart();
    scene.only(&living).await;
    scene.scans(2).await;
    assert_eq!(scene.holders().await, living);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_5_stale_lists_dropped_watches_and_lost_versions_free_no_living_pod() {
    let scene = Scene::start(1).await;
    scene.synced().await;
    // Lists show the time before the pods.
    scene.api.fault(Fault::Stale);
    scene.api.fault(Fault::Freeze);
    let (living, deleted) = populate(&scene).await;
    scene.api.fault(Fault::Compact);
    scene.api.fault(Fault::DropWatches);
    scene.scans(3).await;
    assert_eq!(scene.holders().await.len(), PODS, "a list without a pod is no evidence");
    for name in &deleted {
        scene.delete_pod(name);
    }
    scene.api.fault(Fault::Fail { code: 500, count: 20, retry_after: None });
    scene.api.fault(Fault::Fresh);
    scene.api.fault(Fault::Thaw);
    scene.api.fault(Fault::Compact);
    scene.api.fault(Fault::DropWatches);
    scene.only(&living).await;
    scene.scans(2).await;
    assert_eq!(scene.holders().await, living);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_6_a_new_leader_frees_nothing_before_its_watcher_is_synced() {
    let mut scene = Scene::start(3).await;
    scene.synced().await;
    let (living, deleted) = populate(&scene).await;
    // The next watcher can read everything but the list of nodes.
    scene.api.fault(Fault::Forbid { verb: "list", plural: "nodes" });
    let leader = scene.cluster.leader().await;
    scene.cluster.members[leader].kill();
    for name in &deleted {
        scene.delete_pod(name);
    }
    let lists =
        || scene.api.requests().iter().filter(|one| (one.verb, &*one.resource) == ("list", "nodes")).count();
    let before = lists();
    crate::support::until("the next watcher was refused a few times", async || match lists() - before {
        0..5 => Err(format!("{} lists", lists())),
        _ => Ok(()),
    })
    .await;
    assert_eq!(scene.holders().await.len(), PODS);
    scene.api.fault(Fault::Heal);
    scene.only(&living).await;
    scene.cluster.start(leader);
    scene.cluster.ready().await;
}
