//! Pools of a `poolRef`: existing pools of ipamd, with their own subnet, selectors and settings.

use ipam_api::client::Call;
use ipam_api::resource::{Pool, PoolStatus, Resource};
use serde_json::{Value, json};

use super::management::{Management, unique};
use super::scene::{Scene, ready};
use crate::support::ask::{get, put};
use crate::support::{LONG, until};

impl Scene {
    /// Creates a pool of ipamd with the subnet 10.9.0.0/24 in a network of its own, and further fields.
    async fn rack(&self, more: Value) -> String {
        let (name, network) = (unique("rack"), self.network().await);
        let subnet = json!({"name": name, "network": network, "cidr": "10.9.0.0/24", "gateway": "10.9.0.1"});
        put(&self.ask(), "subnets", subnet).await;
        let ranges = ["10.9.0.10-10.9.0.19"];
        let mut pool = json!({"name": name, "subnet": name, "ranges": ranges, "cooling_ms": 0,
                              "strategy": "sequential"});
        pool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        put(&self.ask(), "pools", pool).await;
        name
    }

    async fn rack_view(&self, name: &str) -> Resource<Pool, PoolStatus> {
        get(&self.ask(), &format!("/v1/pools/{name}")).await.unwrap()
    }
}

fn reference(name: &str) -> Value {
    json!({"spec": {"poolRef": {"name": name}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_a_pool_of_ipamd_gives_its_prefix_and_gateway_and_is_never_changed() {
    let scene = Scene::start(1).await;
    let rack = scene.rack(json!({})).await;
    let before = scene.rack_view(&rack).await;
    scene.object("ippools", "web", reference(&rack)).await;
    scene.reason("ippools", "web", "Applied").await;
    scene.claim("m-0", "web").await;
    assert_eq!(scene.fulfilled("m-0").await, "10.9.0.10/24");
    let address = scene.get("ipaddresses", "m-0").await.unwrap();
    assert_eq!(address["spec"]["gateway"], "10.9.0.1");
    scene.shows("ippools", "web", "/pool", rack.as_str().into()).await;
    let numbers = json!({"total": 10, "free": 9, "used": 1, "outOfRange": 0});
    scene.shows("ippools", "web", "/ipAddresses", numbers).await;
    // An address that another client has counts as used, and is not given.
    let request = json!({"endpoint": {"kind": "host", "name": "printer"},
                         "interfaces": [{"name": "eth0", "ipv4_pools": [rack], "addresses": ["10.9.0.11"]}]});
    let _: Value =
        scene.ask().call(Call::post("/v1/allocations").json(&request).unwrap().within(LONG)).await.unwrap();
    scene.claim("m-1", "web").await;
    assert_eq!(scene.fulfilled("m-1").await, "10.9.0.12/24");
    scene.shows("ippools", "web", "/ipAddresses/used", 3.into()).await;
    for name in ["m-0", "m-1"] {
        scene.delete("ipaddressclaims", name).await;
    }
    scene.delete("ippools", "web").await;
    scene.gone("ippools", "web").await;
    let after = scene.rack_view(&rack).await;
    assert_eq!((after.spec, after.meta.revision), (before.spec, before.meta.revision));
    assert_eq!(after.status.counts.allocated, 1, "only the printer is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_a_pool_of_ipamd_permits_realms_and_namespaces() {
    let mut management = Management::start().await;
    let (own, other) = (management.namespace.clone(), unique("other"));
    management.add_namespace(&other).await;
    let scene = Scene::of(management, 1, "").await;
    let of_realm = scene.rack(json!({"realms": ["elsewhere"]})).await;
    let of_other = scene.rack(json!({"realms": [scene.realm], "namespaces": [other]})).await;
    let both = scene.rack(json!({"realms": [scene.realm], "namespaces": [other, own]})).await;
    for (name, rack) in [("of-realm", &of_realm), ("of-other", &of_other)] {
        scene.object("ippools", name, reference(rack)).await;
        let message = scene.reason("ippools", name, "Forbidden").await;
        assert!(message.contains("/poolRef/name") && message.contains(rack.as_str()), "{message}");
        scene.claim(name, name).await;
        scene.reason("ipaddressclaims", name, "PoolNotReady").await;
    }
    scene.object("ippools", "both", reference(&both)).await;
    scene.claim("both", "both").await;
    assert_eq!(scene.fulfilled("both").await, "10.9.0.10/24");
    // A global pool serves those namespaces that its pool permits.
    let global = unique("rack");
    scene.object("globalippools", &global, reference(&of_other)).await;
    scene.reason("globalippools", &global, "Applied").await;
    scene.claim_in(&other, "m-0", ("GlobalIPPool", &global)).await;
    assert_eq!(scene.fulfilled_in(&other, "m-0").await, "10.9.0.10/24");
    scene.claim_with("m-0", ("GlobalIPPool", &global), json!({})).await;
    let message = scene.reason("ipaddressclaims", "m-0", "AllocationFailed").await;
    assert!(message.contains(&of_other), "{message}");
    let of_own: Vec<_> =
        scene.held().await.into_iter().filter(|one| one.endpoint.namespace.as_str() == own).collect();
    assert_eq!(of_own.len(), 1, "{of_own:?}");
    // Blocks have no namespace in ipamd, so a pool of namespaces gives none.
    let blocks = json!({"spec": {"poolRef": {"name": of_other}, "allocationPrefixLength": 31}});
    let global_blocks = unique("blocks");
    scene.object("globalprefixpools", &global_blocks, blocks).await;
    scene.claim_with("block", ("GlobalPrefixPool", &global_blocks), json!({})).await;
    until("the claim on a block is refused", async || {
        let (state, _, message) = ready(&scene.get("ipaddressclaims", "block").await.unwrap());
        if state == "False" && message.contains(&of_other) { Ok(()) } else { Err(message) }
    })
    .await;
    assert_eq!(scene.get("ipaddresses", "block").await, None);
    let path = format!("{}/m-0", scene.management.collection(&other, "ipaddressclaims"));
    scene.management.delete(&path).await;
    for claim in ["m-0", "block", "both"] {
        scene.delete("ipaddressclaims", claim).await;
    }
    for (plural, name) in [("globalippools", &global), ("globalprefixpools", &global_blocks)] {
        scene.delete(plural, name).await;
        scene.gone(plural, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_a_missing_pool_of_ipamd_is_shown_and_used_once_it_is_there() {
    let scene = Scene::start(1).await;
    let late = unique("late");
    scene.object("ippools", "web", reference(&late)).await;
    scene.claim("m-0", "web").await;
    let message = scene.reason("ippools", "web", "NotFound").await;
    assert!(message.contains(&late) && message.contains("does not exist"), "{message}");
    scene.reason("ipaddressclaims", "m-0", "PoolNotReady").await;
    let subnet = json!({"name": late, "network": scene.network().await, "cidr": "10.9.0.0/24"});
    put(&scene.ask(), "subnets", subnet).await;
    let pool = json!({"name": late, "subnet": late, "ranges": ["10.9.0.10"]});
    put(&scene.ask(), "pools", pool).await;
    let begun = std::time::Instant::now();
    assert_eq!(scene.fulfilled("m-0").await, "10.9.0.10/24");
    println!("c5_3: served {} ms after the pool was created", begun.elapsed().as_millis());
    assert!(scene.get("ipaddresses", "m-0").await.unwrap()["spec"].get("gateway").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_12_a_pool_of_ipamd_gives_blocks() {
    let scene = Scene::start(1).await;
    let network = scene.network().await;
    let name = unique("blocks");
    put(&scene.ask(), "subnets", json!({"name": name, "network": network, "cidr": "10.8.0.0/16"})).await;
    put(&scene.ask(), "pools", json!({"name": name, "subnet": name, "allow_edges": true})).await;
    let blocks =
        json!({"spec": {"poolRef": {"name": name}, "allocationPrefixLength": 24, "gateway": "10.8.0.1"}});
    scene.object("prefixpools", "blocks", blocks).await;
    for (claim, block) in [("b-0", "10.8.0.0/24"), ("b-1", "10.8.1.0/24")] {
        scene.claim_with(claim, ("PrefixPool", "blocks"), json!({})).await;
        assert_eq!(scene.fulfilled(claim).await, block);
        assert_eq!(scene.get("ipaddresses", claim).await.unwrap()["spec"]["gateway"], "10.8.0.1");
    }
    let numbers = json!({"total": 256, "free": 254, "used": 2, "outOfRange": 0});
    scene.shows("prefixpools", "blocks", "/prefixes", numbers).await;
    // The length of IPv4 has no default.
    scene.object("prefixpools", "no-length", reference(&name)).await;
    let message = scene.reason("prefixpools", "no-length", "InvalidField").await;
    assert!(message.contains("/allocationPrefixLength"), "{message}");
}
