//! Claims that wait: for an address, for a prefix, and for a pool that is opened.

use std::time::Instant;

use ipam_api::cluster::Cluster as Shown;
use ipam_api::resource::{Page, Prefix};
use serde_json::json;

use super::scene::Scene;
use crate::cluster::command_line::ipamctl;
use crate::support::ask::get;
use crate::support::programs;

/// Waiting claims of line 4.
const CLAIMS: usize = 100;

/// Names of the claims of the realm that hold an address, in the order of the allocations.
async fn served(scene: &Scene) -> Vec<String> {
    let mut held = scene.held().await;
    held.sort_by_key(|one| one.id);
    held.iter().map(|one| one.endpoint.name.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_4_a_release_serves_the_oldest_of_a_hundred_claims() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10"], "prefix": 24})).await;
    scene.claim("holder", "web").await;
    assert_eq!(scene.fulfilled("holder").await, "10.0.0.10/24");
    // The order of the names is another one than that of the claims.
    let mut names: Vec<String> = (0..CLAIMS).map(|number| format!("m-{:02}", number * 37 % CLAIMS)).collect();
    for name in &names {
        scene.claim(name, "web").await;
        let message = scene.reason("ipaddressclaims", name, "PoolExhausted").await;
        assert!(message.contains("0 free"), "{message}");
    }
    // A claim that is deleted leaves the queue.
    let withdrawn = names.remove(1);
    scene.delete("ipaddressclaims", &withdrawn).await;
    scene.gone("ipaddressclaims", &withdrawn).await;
    let (mut former, begun) = ("holder", Instant::now());
    for name in &names[..4] {
        scene.delete("ipaddressclaims", former).await;
        assert_eq!(scene.fulfilled(name).await, "10.0.0.10/24");
        assert_eq!(served(&scene).await, [name.as_str()]);
        former = name;
    }
    println!(
        "c5_4: 4 claims one after the other served {} ms after 4 deletions",
        begun.elapsed().as_millis()
    );
    let begun = Instant::now();
    scene.change("ippools", "web", json!({"addresses": ["10.0.0.10-10.0.0.200"]})).await;
    for (number, name) in names.iter().enumerate().skip(4) {
        assert_eq!(scene.fulfilled(name).await, format!("10.0.0.{}/24", 7 + number));
    }
    println!("c5_4: {} claims served {} ms after an extension", CLAIMS - 5, begun.elapsed().as_millis());
    assert_eq!(served(&scene).await, names[3..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_grace_period_ends_for_a_waiting_claim() {
    let scene = Scene::start(1).await;
    let spec = json!({"addresses": ["10.0.0.10"], "prefix": 24, "addressReuseGracePeriodSeconds": 1});
    scene.pool("web", spec).await;
    scene.claim("first", "web").await;
    assert_eq!(scene.fulfilled("first").await, "10.0.0.10/24");
    let former = scene.held().await;
    scene.claim("second", "web").await;
    scene.reason("ipaddressclaims", "second", "PoolExhausted").await;
    let begun = Instant::now();
    scene.delete("ipaddressclaims", "first").await;
    scene.gone("ipaddressclaims", "first").await;
    // Nothing but the end of the cooling serves the claim: no object changes any more.
    assert_eq!(scene.fulfilled("second").await, "10.0.0.10/24");
    println!("c5_3: served {} ms after the deletion", begun.elapsed().as_millis());
    let held = scene.held().await;
    assert_eq!(served(&scene).await, ["second"]);
    assert_ne!(held[0].id, former[0].id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_4_a_claim_whose_labels_change_keeps_its_place() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10"], "prefix": 24})).await;
    scene.claim("holder", "web").await;
    scene.fulfilled("holder").await;
    for name in ["first", "second"] {
        scene.claim(name, "web").await;
        scene.reason("ipaddressclaims", name, "PoolExhausted").await;
    }
    let labels = json!({"metadata": {"labels": {"machine": "blue"}}});
    scene.management.patch(&scene.path("ipaddressclaims", "first"), labels).await.unwrap();
    // All claims of the pool are requested again when its state changes.
    scene.disable("ippools", "web", true).await;
    for name in ["first", "second"] {
        scene.reason("ipaddressclaims", name, "PoolNotReady").await;
    }
    scene.disable("ippools", "web", false).await;
    for name in ["first", "second"] {
        scene.reason("ipaddressclaims", name, "PoolExhausted").await;
    }
    scene.delete("ipaddressclaims", "holder").await;
    scene.fulfilled("first").await;
    scene.reason("ipaddressclaims", "second", "PoolExhausted").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_12_waiting_claims_for_prefixes_are_served_in_their_order() {
    let scene = Scene::start(1).await;
    scene.object("prefixpools", "blocks", json!({"spec": {"prefixes": ["fd00::/63"]}})).await;
    let claim = async |name: &str| scene.claim_with(name, ("PrefixPool", "blocks"), json!({})).await;
    for (name, prefix) in [("a", "fd00::/64"), ("b", "fd00:0:0:1::/64")] {
        claim(name).await;
        assert_eq!(scene.fulfilled(name).await, prefix);
    }
    for name in ["z", "y", "x"] {
        claim(name).await;
        scene.reason("ipaddressclaims", name, "PoolExhausted").await;
    }
    // The servers have the queue: nothing depends on the next attempt of the provider.
    let queue = format!("/v1/prefixes?realm={}", scene.realm);
    let all: Page<Prefix> = get(&scene.ask(), &queue).await.unwrap();
    let mut waiting: Vec<Prefix> = all.items.into_iter().filter(|one| one.cidr.is_none()).collect();
    waiting.sort_by_key(|one| one.id);
    let owners: Vec<&str> =
        waiting.iter().map(|one| one.owner.as_str().rsplit('.').next().unwrap()).collect();
    assert_eq!(owners, ["z", "y", "x"]);
    // A claim that is deleted leaves the queue.
    scene.delete("ipaddressclaims", "z").await;
    scene.gone("ipaddressclaims", "z").await;
    scene.delete("ipaddressclaims", "b").await;
    assert_eq!(scene.fulfilled("y").await, "fd00:0:0:1::/64");
    scene.reason("ipaddressclaims", "x", "PoolExhausted").await;
    scene.delete("ipaddressclaims", "a").await;
    assert_eq!(scene.fulfilled("x").await, "fd00::/64");
    assert_eq!(scene.fulfilled("y").await, "fd00:0:0:1::/64");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_5_a_disabled_pool_serves_its_claims_once_it_is_enabled() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    scene.object("prefixpools", "blocks", json!({"spec": {"prefixes": ["fd00::/62"]}})).await;
    let pools = [("ippools", "IPPool", "web"), ("prefixpools", "PrefixPool", "blocks")];
    for (plural, kind, pool) in pools {
        scene.claim_with(&format!("{pool}-0"), (kind, pool), json!({})).await;
        scene.fulfilled(&format!("{pool}-0")).await;
        scene.disable(plural, pool, true).await;
        scene.claim_with(&format!("{pool}-1"), (kind, pool), json!({})).await;
        let message = scene.reason("ipaddressclaims", &format!("{pool}-1"), "PoolNotReady").await;
        assert!(message.contains("disabled"), "{message}");
    }
    let expected = ["10.0.0.11/24", "fd00:0:0:1::/64"];
    for ((plural, _, pool), expected) in pools.into_iter().zip(expected) {
        // What is fulfilled stays so.
        scene.fulfilled(&format!("{pool}-0")).await;
        scene.disable(plural, pool, false).await;
        assert_eq!(scene.fulfilled(&format!("{pool}-1")).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_5_a_restored_pool_serves_its_claims_once_it_is_confirmed() {
    let mut scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    scene.claim("before", "web").await;
    assert_eq!(scene.fulfilled("before").await, "10.0.0.10/24");
    let file = scene.cluster.dir.path().join("backup.ipamd");
    ipamctl(&scene.cluster.urls(), &format!("cluster backup {}", file.display())).await.ends(0);
    scene.claim("after", "web").await;
    assert_eq!(scene.fulfilled("after").await, "10.0.0.11/24");
    scene.cluster.kill_all();
    scene.cluster.wipe(0);
    let mut restore = std::process::Command::new(programs::ipamd());
    restore.arg("restore").arg(&file).arg("--data-dir").arg(&scene.cluster.members[0].data_dir).env_clear();
    let restored = restore.output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    scene.cluster.start_all();
    scene.cluster.ready().await;
    scene.claim("new", "web").await;
    let message = scene.reason("ipaddressclaims", "new", "PoolNotReady").await;
    assert!(message.contains("confirmed"), "{message}");
    for (name, address) in [("before", "10.0.0.10/24"), ("after", "10.0.0.11/24")] {
        assert_eq!(scene.fulfilled(name).await, address);
    }
    let shown: Shown = get(&scene.ask(), "/v1/cluster").await.unwrap();
    let confirm = format!("cluster epoch confirm --all --confirm {}", shown.id);
    ipamctl(&scene.cluster.urls(), &confirm).await.ends(0);
    // The address of a claim that the backup lacks was adopted, and is not allocated again.
    assert_eq!(scene.fulfilled("new").await, "10.0.0.12/24");
    assert_eq!(served(&scene).await.len(), 3);
}
