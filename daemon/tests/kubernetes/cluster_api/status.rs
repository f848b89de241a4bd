//! Statuses of pools: numbers at every observation, pools that shrink, and pools that overlap.

use std::collections::BTreeSet;

use ipam_api::resource::{Pool, PoolStatus, Resource};
use serde_json::{Value, json};

use super::scene::{Scene, ready};
use crate::support::ask::get;
use crate::support::until;

/// Numbers of a pool's status: total, free, used, out of range.
type Numbers = [u64; 4];

fn numbers(pool: &Value) -> Option<Numbers> {
    let counts = &pool["status"]["ipAddresses"];
    counts
        .is_object()
        .then(|| ["total", "free", "used", "outOfRange"].map(|field| counts[field].as_u64().unwrap()))
}

impl Scene {
    /// Shown numbers of a pool.
    async fn numbers(&self, name: &str) -> Option<Numbers> {
        numbers(&self.get("ippools", name).await.unwrap())
    }

    /// Collects all numbers that pools show while something happens.
    async fn observed<const N: usize>(
        &self,
        pools: [&str; N],
        happens: impl Future<Output = ()>,
    ) -> [BTreeSet<Numbers>; N] {
        let mut seen = [const { BTreeSet::new() }; N];
        let mut happens = std::pin::pin!(happens);
        loop {
            let is_over = tokio::select! {
                () = &mut happens => true,
                () = tokio::time::sleep(std::time::Duration::from_millis(20)) => false,
            };
            // Also the last numbers are observed.
            for (seen, name) in seen.iter_mut().zip(pools) {
                seen.extend(self.numbers(name).await);
            }
            if is_over {
                return seen;
            }
        }
    }

    /// Waits until a pool shows these numbers.
    async fn show(&self, name: &str, wanted: Numbers) {
        until(&format!("{name} shows {wanted:?}"), async || {
            let pool = self.get("ippools", name).await.unwrap();
            if numbers(&pool) == Some(wanted) { Ok(()) } else { Err(pool["status"].to_string()) }
        })
        .await;
    }

    /// Creates a pool of the vectors in a network of its own, and waits until it serves claims.
    async fn own_pool(&self, name: &str, mut spec: Value) {
        spec["network"] = self.network().await.into();
        self.serving_pool("ippools", name, spec).await;
    }

    async fn change_pool(&self, name: &str, spec: Value) {
        self.management.patch(&self.path("ippools", name), json!({"spec": spec})).await.unwrap();
    }

    /// Creates claims one after the other, and returns the last parts of their addresses.
    async fn claims(&self, pool: &str, count: usize) -> Vec<String> {
        let mut given = Vec::new();
        for index in 0..count {
            let name = format!("{pool}-{index}");
            self.claim(&name, pool).await;
            let address = self.fulfilled(&name).await;
            given.push(address.split(['.', '/']).nth(3).unwrap().to_owned());
        }
        given
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_15_b4_totals_of_pools() {
    let scene = Scene::start(1).await;
    fn pool(addresses: &str, prefix: u8, gateway: Option<&str>) -> Value {
        json!({"addresses": [addresses], "prefix": prefix, "gateway": gateway})
    }
    for (index, (spec, total)) in [
        (pool("10.0.0.10-10.0.0.20", 24, Some("10.0.0.10")), 10),
        (pool("10.0.0.10-10.0.0.20", 24, Some("10.0.0.1")), 11),
        (pool("10.0.0.0-10.0.0.1", 24, Some("10.0.0.2")), 1),
        (pool("10.0.0.254-10.0.0.255", 24, Some("10.0.0.1")), 1),
        (pool("fe80::ffff", 120, Some("fe80::a")), 1),
        (pool("fe80::1/126", 64, None), 3),
        (
            json!({"addresses": ["192.168.1.1/24", "192.168.2.1/31"], "prefix": 22,
                "allocateReservedIPAddresses": true}),
            258,
        ),
        (json!({"addresses": ["192.168.1.1-192.168.1.10", "192.168.1.5-192.168.1.15"], "prefix": 24}), 15),
        (json!({"addresses": ["192.168.1.1-192.168.1.10", "192.168.1.20-192.168.1.25"], "prefix": 24}), 16),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("t{index}");
        let mut spec = spec;
        spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        scene.own_pool(&name, spec).await;
        scene.show(&name, [total, total, 0, 0]).await;
    }
    scene.own_pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    scene.show("web", [11, 11, 0, 0]).await;
    for used in 1..=2 {
        scene.claim(&format!("m-{used}"), "web").await;
        scene.show("web", [11, 11 - used, used, 0]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_15_the_numbers_add_up_at_every_observation() {
    let scene = Scene::start(1).await;
    let spec = json!({"addresses": ["10.0.0.0/24"], "prefix": 24, "gateway": "10.0.0.1"});
    let mut at_once = spec.clone();
    at_once["addressReuseGracePeriodSeconds"] = 0.into();
    scene.own_pool("at-once", at_once).await;
    scene.own_pool("cooling", spec).await;
    let pools = ["at-once", "cooling"];
    let of = |pool: &str, index: usize| format!("{pool}-{index}");
    let happens = async {
        for pool in pools {
            scene.claims(pool, 6).await;
            scene.show(pool, [253, 247, 6, 0]).await;
            for index in 0..3 {
                scene.delete("ipaddressclaims", &of(pool, index)).await;
            }
        }
        scene.show("at-once", [253, 250, 3, 0]).await;
        scene.show("cooling", [253, 247, 3, 0]).await;
    };
    let [at_once, cooling] = scene.observed(pools, happens).await;
    for [total, free, used, outside] in &at_once {
        assert_eq!((*total, total - free, *outside), (253, *used, 0), "{at_once:?}");
    }
    for [total, free, used, outside] in &cooling {
        // Three addresses cool at most, and are neither free nor used.
        let cools = total.checked_sub(free + used);
        assert!(*total == 253 && *outside == 0 && cools.is_some_and(|cools| cools <= 3), "{cooling:?}");
    }
    assert!(at_once.len() > 2 && cooling.len() > 2, "{at_once:?} {cooling:?}");
    for pool in pools {
        let shown = scene.get("ippools", pool).await.unwrap();
        let path = format!("/v1/pools/{}", shown["status"]["pool"].as_str().unwrap());
        let view: Resource<Pool, PoolStatus> = get(&scene.ask(), &path).await.unwrap();
        let counts = &view.status.counts;
        let sum = counts.free + counts.allocated + counts.cooling + counts.quarantined;
        assert_eq!((sum, counts.allocated), (253, 3), "{counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_15_large_numbers_saturate_at_the_largest_of_64_bits() {
    let scene = Scene::start(1).await;
    let most = i64::MAX as u64;
    for (name, cidr, prefix, total, first) in [
        ("huge", "fd00::/20", 20, most, "fd00::1/20"),
        ("long", "fd00::/65", 65, most, "fd00::1/65"),
        // All but the address of the subnet's routers.
        ("exact", "fd00::/66", 66, (1 << 62) - 1, "fd00::1/66"),
    ] {
        scene.own_pool(name, json!({"addresses": [cidr], "prefix": prefix})).await;
        scene.show(name, [total, total, 0, 0]).await;
        scene.claim(name, name).await;
        assert_eq!(scene.fulfilled(name).await, first);
        scene.show(name, [total, total - 1, 1, 0]).await;
    }
    // `total` of the machine is beyond the numbers that JSON carries exactly, and this one is not.
    scene.own_pool("plain", json!({"addresses": ["fd00::/78"], "prefix": 78})).await;
    scene.show("plain", [(1 << 50) - 1, (1 << 50) - 1, 0, 0]).await;
    let prefixes = json!({"prefixes": ["fd00::/20"], "allocationPrefixLength": 128});
    scene.serving_pool("prefixpools", "blocks", prefixes).await;
    let wanted = json!({"total": most, "free": most, "used": 0, "outOfRange": 0});
    scene.shows("prefixpools", "blocks", "/prefixes", wanted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_pool_that_shrinks_below_its_addresses_shows_them() {
    let scene = Scene::start(1).await;
    let reserved = |addresses: &str| {
        let gateway = "10.0.0.1";
        json!({
            "addresses": [addresses], "prefix": 24, "allocateReservedIPAddresses": true, "gateway": gateway,
        })
    };
    let plain = json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24});
    let less = |addresses: Value| json!({"addresses": addresses, "allocateReservedIPAddresses": false});
    for (name, spec, used, shrunk, outside, next) in [
        (
            "range",
            plain,
            5,
            json!({"addresses": ["10.0.0.13-10.0.0.20"]}),
            &["10.0.0.10", "10.0.0.11", "10.0.0.12"][..],
            "10.0.0.15",
        ),
        (
            "edge",
            reserved("10.0.0.0-10.0.0.255"),
            4,
            less(json!(["10.0.0.1-10.0.0.255"])),
            &["10.0.0.0"],
            "10.0.0.5",
        ),
        (
            "edge-and-hole",
            reserved("10.0.0.0-10.0.0.255"),
            5,
            less(json!(["10.0.0.0", "10.0.0.2-10.0.0.255"])),
            &["10.0.0.0"],
            "10.0.0.6",
        ),
        (
            "end",
            reserved("10.0.0.251-10.0.0.255"),
            5,
            less(json!(["10.0.0.251-10.0.0.254"])),
            &["10.0.0.255"],
            "",
        ),
    ] {
        scene.own_pool(name, spec).await;
        scene.claims(name, used).await;
        let total = scene.numbers(name).await.unwrap()[0];
        scene.change_pool(name, shrunk).await;
        let message = scene.reason("ippools", name, "InUse").await;
        let mut words = message.split(|one: char| one != '.' && !one.is_ascii_alphanumeric());
        let is_named = words.any(|word| outside.contains(&word.trim_end_matches('.')));
        assert!(is_named, "{name}: {message}");
        scene.show(name, [total, total - used as u64, used as u64, outside.len() as u64]).await;
        // The pool is as it was: its claims keep what they have, and further ones are served.
        for index in 0..used {
            let claim = scene.get("ipaddressclaims", &format!("{name}-{index}")).await.unwrap();
            assert_eq!(ready(&claim).1, "Allocated", "{name}");
        }
        if !next.is_empty() {
            let claim = format!("{name}-next");
            scene.claim(&claim, name).await;
            assert_eq!(scene.fulfilled(&claim).await, format!("{next}/24"));
        }
    }
    // Once the claims of these addresses are gone the spec is applied, without a further change.
    for index in 0..3 {
        scene.delete("ipaddressclaims", &format!("range-{index}")).await;
    }
    let begun = std::time::Instant::now();
    scene.reason("ippools", "range", "Applied").await;
    println!("c5_3: applied {} ms after the last deletion", begun.elapsed().as_millis());
    scene.show("range", [8, 5, 3, 0]).await;
    // A spec that contains all addresses again is applied at once.
    scene
        .change_pool(
            "end",
            json!({"allocateReservedIPAddresses": true, "addresses": ["10.0.0.250-10.0.0.255"]}),
        )
        .await;
    scene.reason("ippools", "end", "Applied").await;
    scene.show("end", [6, 1, 5, 0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_12_b4_a_prefix_pool_that_shrinks_below_its_blocks_shows_them() {
    let scene = Scene::start(1).await;
    let network = scene.network().await;
    let spec = json!({"prefixes": ["fd00::/62"], "network": network});
    scene.serving_pool("prefixpools", "blocks", spec).await;
    let claim = async |name: &str| {
        scene.claim_with(name, ("PrefixPool", "blocks"), json!({})).await;
        scene.fulfilled(name).await
    };
    for name in ["b-0", "b-1", "b-2"] {
        claim(name).await;
    }
    let change = json!({"spec": {"excludedPrefixes": ["fd00:0:0:1::", "fd00:0:0:2::/64"]}});
    scene.management.patch(&scene.path("prefixpools", "blocks"), change).await.unwrap();
    let message = scene.reason("prefixpools", "blocks", "InUse").await;
    assert!(message.contains("fd00:0:0:1::"), "{message}");
    fn numbers(total: u64, free: u64, used: u64, outside: u64) -> Value {
        json!({"total": total, "free": free, "used": used, "outOfRange": outside})
    }
    scene.shows("prefixpools", "blocks", "/prefixes", numbers(4, 1, 3, 2)).await;
    assert_eq!(claim("b-3").await, "fd00:0:0:3::/64", "the pool is as it was");
    scene.shows("prefixpools", "blocks", "/prefixes", numbers(4, 0, 4, 2)).await;
    for name in ["b-1", "b-2"] {
        scene.delete("ipaddressclaims", name).await;
    }
    scene.reason("prefixpools", "blocks", "Applied").await;
    scene.shows("prefixpools", "blocks", "/prefixes", numbers(2, 0, 2, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_16_a_pool_that_overlaps_names_the_other_one() {
    let scene = Scene::start(1).await;
    let spec = |addresses: &str| json!({"addresses": [addresses], "prefix": 24});
    scene.serving_pool("ippools", "first", spec("10.0.0.10-10.0.0.20")).await;
    scene.pool("second", spec("10.0.0.15-10.0.0.30")).await;
    scene.claim("waits", "second").await;
    let message = scene.reason("ippools", "second", "Overlap").await;
    let first = scene.get("ippools", "first").await.unwrap();
    let name = first["status"]["pool"].as_str().unwrap();
    let object = format!("IPPool {}/first", scene.management.namespace);
    assert!(message.contains(name) && message.contains(&object), "{message}");
    let second = scene.get("ippools", "second").await.unwrap();
    assert_eq!(ready(&second).0, "False");
    assert!(second["status"].get("pool").is_none() && numbers(&second).is_none(), "{second}");
    let message = scene.reason("ipaddressclaims", "waits", "PoolNotReady").await;
    assert!(message.contains("overlaps"), "{message}");
    // A pool that would come to overlap stays as it was, and serves its claims.
    scene.serving_pool("ippools", "third", spec("10.0.0.31-10.0.0.32")).await;
    scene.change_pool("third", json!({"addresses": ["10.0.0.20-10.0.0.32"]})).await;
    let message = scene.reason("ippools", "third", "Overlap").await;
    assert!(message.contains(&object), "{message}");
    scene.claim("of-third", "third").await;
    assert_eq!(scene.fulfilled("of-third").await, "10.0.0.31/24");
    scene.change_pool("third", json!({"addresses": ["10.0.0.31-10.0.0.32"]})).await;
    scene.reason("ippools", "third", "Applied").await;
    // The same addresses in another network are others.
    scene.own_pool("elsewhere", spec("10.0.0.10-10.0.0.20")).await;
    // Prefixes and addresses of one network overlap, too.
    let blocks = json!({"prefixes": ["10.0.0.0/24"], "allocationPrefixLength": 28});
    scene.object("prefixpools", "blocks", json!({"spec": blocks})).await;
    scene.reason("prefixpools", "blocks", "Overlap").await;
    let begun = std::time::Instant::now();
    scene.delete("ippools", "first").await;
    scene.gone("ippools", "first").await;
    assert_eq!(scene.fulfilled("waits").await, "10.0.0.15/24");
    println!("c5_16: served {} ms after the deletion of the other pool", begun.elapsed().as_millis());
    scene.reason("ippools", "second", "Applied").await;
}
