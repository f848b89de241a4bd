//! Vectors of the in-cluster provider (part B4 of the reference): sets of pools in the order of their
//! addresses, and refusals.
//!
//! Deviations: a pool lies in one subnet of ipamd (IPv6: at most a /8), and prefix pools may be IPv4. The
//! IPv6 vectors of /112 and /120 with addresses outside of their subnet run as /96, because the webhook of
//! the in-cluster provider refuses such addresses.

use serde_json::{Value, json};

use super::scene::{Scene, ready};
use crate::support::until;

/// Pool, the number that it shows, and the addresses that claims get one after the other. If these are all,
/// a further claim shows that the pool is exhausted.
struct Vector {
    spec: Value,
    total: u64,
    given: Vec<&'static str>,
}

fn vector(prefix: u8, gateway: &str, addresses: &[&str], total: u64, given: &[&'static str]) -> Vector {
    let mut spec = json!({"addresses": addresses, "prefix": prefix});
    if !gateway.is_empty() {
        spec["gateway"] = gateway.into();
    }
    Vector { spec, total, given: given.to_vec() }
}

impl Vector {
    fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }
}

fn sets_of_ipv4() -> Vec<Vector> {
    let gateway = "192.168.0.1";
    let with = |more: &[&'static str]| [more, &["192.168.0.3-192.168.0.4", "192.168.0.6/31"]].concat();
    let [r3, r4, r6, r7] = ["192.168.0.3", "192.168.0.4", "192.168.0.6", "192.168.0.7"];
    let reserved = with(&["192.168.0.0", gateway, "192.168.0.255"]);
    let wide = with(&["192.168.1.0", "192.168.0.255", "192.168.255.255"]);
    let all = &["192.168.0.0/24"];
    vec![
        vector(24, gateway, &with(&["192.168.0.2"]), 5, &["192.168.0.2", r3, r4, r6, r7]),
        vector(0, gateway, &["192.168.0.3-192.168.0.10"], 8, &[r3, r4, "192.168.0.5"]),
        vector(24, gateway, &with(&["192.168.0.0"]), 4, &[r3, r4, r6, r7]),
        vector(16, gateway, &wide, 6, &[r3, r4, r6, r7, "192.168.0.255", "192.168.1.0"]),
        vector(24, gateway, &with(&[gateway]), 4, &[r3, r4, r6, r7]),
        vector(24, gateway, &reserved, 6, &["192.168.0.0", r3, r4, r6, r7, "192.168.0.255"])
            .with("allocateReservedIPAddresses", true.into()),
        vector(
            24,
            gateway,
            &["192.168.0.0-192.168.0.10"],
            6,
            &["192.168.0.2", r3, r4, "192.168.0.8", "192.168.0.9", "192.168.0.10"],
        )
        .with("excludedAddresses", json!(["192.168.0.5", "192.168.0.6", "192.168.0.7"])),
        vector(24, gateway, all, 126, &["192.168.0.2", r3])
            .with("excludedAddresses", json!(["192.168.0.128/25"])),
        vector(24, gateway, all, 234, &["192.168.0.21", "192.168.0.22"])
            .with("excludedAddresses", json!(["192.168.0.2-192.168.0.20"])),
    ]
}

fn sets_of_ipv6() -> Vec<Vector> {
    let with = |more: &[&'static str]| [more, &["fd01::3-fd01::4", "fd01::6/127"]].concat();
    let [r3, r4, r6, r7] = ["fd01::3", "fd01::4", "fd01::6", "fd01::7"];
    let wide = with(&["fd01::ffff", "fd01::1:0", "fd01::ffff:ffff"]);
    let reserved = with(&["fd01::", "fd01::1", "fd01::ffff:ffff"]);
    vec![
        vector(120, "fd01::1", &with(&["fd01::2"]), 5, &["fd01::2", r3, r4, r6, r7]),
        vector(120, "fd01::1", &with(&["fd01::"]), 4, &[r3, r4, r6, r7]),
        vector(96, "fd01::1", &wide, 7, &[r3, r4, r6, r7, "fd01::ffff", "fd01::1:0", "fd01::ffff:ffff"]),
        vector(96, "fd01::1", &reserved, 6, &["fd01::", r3, r4, r6, r7, "fd01::ffff:ffff"])
            .with("allocateReservedIPAddresses", true.into()),
    ]
}

fn claims() -> Vec<Vector> {
    let tens = ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.15"];
    vec![
        // The first free address, whatever the order of the list.
        vector(24, "", &["10.0.0.20", "10.0.0.10-10.0.0.15"], 7, &[&tens[..], &["10.0.0.20"]].concat()),
        vector(24, "10.0.0.2", &["10.0.0.1-10.0.0.254"], 253, &["10.0.0.1", "10.0.0.3"]),
        vector(24, "10.0.1.1", &["10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.255"], 1, &["10.0.1.2"]),
        vector(24, "10.1.1.1", &["10.1.1.0/24"], 248, &["10.1.1.6", "10.1.1.8", "10.1.1.9"])
            .with("excludedAddresses", json!(["10.1.1.2-10.1.1.5", "10.1.1.7"])),
        vector(24, "10.0.1.1", &["10.0.1.3", "10.0.1.2"], 2, &["10.0.1.2", "10.0.1.3"]),
        vector(24, "10.0.0.1", &["10.0.0.50", "10.0.0.128"], 2, &["10.0.0.50", "10.0.0.128"]),
        // Pools of `v1alpha1`, converted.
        vector(28, "", &["1.1.1.1-1.1.1.10"], 10, &["1.1.1.1"]),
        vector(24, "", &["1.1.1.1-1.1.1.254"], 254, &["1.1.1.1"]),
    ]
}

/// Creates a pool of a vector in a network of its own, and checks what claims get, and its status.
async fn check(scene: &Scene, (plural, kind, counts): (&str, &str, &str), name: &str, vector: &Vector) {
    let Vector { spec, total, given } = vector;
    let mut spec = spec.clone();
    spec["network"] = scene.network().await.into();
    scene.serving_pool(plural, name, spec.clone()).await;
    let length = spec["prefix"].as_u64().or(spec["allocationPrefixLength"].as_u64()).unwrap_or(64);
    for (index, address) in given.iter().enumerate() {
        let claim = format!("{name}-{index}");
        scene.claim_with(&claim, (kind, name), json!({})).await;
        assert_eq!(scene.fulfilled(&claim).await, format!("{address}/{length}"), "{spec}");
        let object = scene.get("ipaddresses", &claim).await.unwrap();
        assert_eq!(object["spec"]["gateway"], spec["gateway"], "{spec}");
    }
    let used = given.len() as u64;
    if used == *total {
        let claim = format!("{name}-more");
        scene.claim_with(&claim, (kind, name), json!({})).await;
        scene.reason("ipaddressclaims", &claim, "PoolExhausted").await;
        assert_eq!(scene.get("ipaddresses", &claim).await, None, "{spec}");
    }
    let numbers = json!({"total": total, "free": total - used, "used": used, "outOfRange": 0});
    scene.shows(plural, name, &format!("/{counts}"), numbers).await;
}

async fn check_all(scene: &Scene, kind: (&str, &str, &str), vectors: &[Vector]) {
    let names: Vec<String> = (0..vectors.len()).map(|index| format!("v{index}")).collect();
    let all = names.iter().zip(vectors).map(|(name, vector)| check(scene, kind, name, vector));
    futures::future::join_all(all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_pools_give_the_addresses_of_their_sets_in_order() {
    let scene = Scene::start(1).await;
    let vectors: Vec<Vector> = [sets_of_ipv4(), sets_of_ipv6(), claims()].into_iter().flatten().collect();
    check_all(&scene, ("ippools", "IPPool", "ipAddresses"), &vectors).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_12_b4_prefix_pools_give_their_blocks_in_order() {
    let scene = Scene::start(1).await;
    let vector = |length: u8, prefixes: &[&str], excluded: &[&str], total, given: &[&'static str]| {
        let mut spec = json!({"prefixes": prefixes, "excludedPrefixes": excluded});
        if length != 64 {
            spec["allocationPrefixLength"] = length.into();
        }
        Vector { spec, total, given: given.to_vec() }
    };
    let four = ["fd00::", "fd00:0:0:1::", "fd00:0:0:2::", "fd00:0:0:3::"];
    let merged = &["fd00::/63", "fd00::/62", "fd00:0:0:8::/62"];
    let vectors = [
        vector(64, &["fd00::/62"], &[], 4, &four),
        vector(64, merged, &[], 8, &[&four[..], &["fd00:0:0:8::"]].concat()),
        // The gateway excludes no block.
        vector(64, &["fd00::/62"], &["fd00:0:0:1::/64"], 3, &["fd00::", "fd00:0:0:2::", "fd00:0:0:3::"])
            .with("gateway", "fd00::1".into()),
        vector(56, &["fd06::/48"], &[], 256, &["fd06::", "fd06:0:0:100::"]),
        vector(64, &["fd00:0:0:1::/64", "fd10::/48"], &[], 65_537, &["fd00:0:0:1::", "fd10::"]),
        // One excluded address excludes its block.
        vector(64, &["fd00::/62"], &["fd00::1"], 3, &["fd00:0:0:1::", "fd00:0:0:2::", "fd00:0:0:3::"]),
        vector(128, &["fd00::7/128"], &[], 1, &["fd00::7"]),
        vector(
            24,
            &["10.1.0.0/16", "10.0.0.0/16"],
            &["10.0.2.9"],
            511,
            &["10.0.0.0", "10.0.1.0", "10.0.3.0"],
        )
        .with("gateway", "10.0.0.1".into()),
        vector(32, &["10.0.0.0/31"], &[], 2, &["10.0.0.0", "10.0.0.1"]),
    ];
    check_all(&scene, ("prefixpools", "PrefixPool", "prefixes"), &vectors).await;
    assert!(scene.held().await.is_empty(), "blocks are no addresses");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_wrong_specs_are_refused_by_a_rule_or_shown() {
    let scene = Scene::start(1).await;
    fn ip(prefix: u16, gateway: &str, addresses: &[&str]) -> Value {
        json!({"addresses": addresses, "prefix": prefix, "gateway": gateway})
    }
    let excluding = |excluded: &[&str]| {
        let mut spec = ip(24, "10.0.0.1", &["10.0.0.10-10.0.0.20"]);
        spec["excludedAddresses"] = json!(excluded);
        spec
    };
    let of = |prefixes: &[&str], more: Value| {
        let mut spec = json!({"prefixes": prefixes});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let range = "10.0.0.10-10.0.0.20";
    let other = "provided address belongs to a different subnet than others";
    let not_address = "provided address is not a valid IP, range, nor CIDR";
    let mixed_gateway = "provided gateway and addresses are of mixed IP families";
    let mixed_excluded = "addresses and excluded addresses are of mixed IP families";
    let not_cidr = "provided entry is not a valid IPv6 CIDR";
    let mut table = vec![
        ("ippools", json!({}), "addresses is required"),
        ("ippools", json!({"addresses": [], "prefix": 24}), "addresses is required"),
        ("ippools", ip(24, "invalid", &["10.0.0.25"]), "invalid"),
        ("ippools", json!({"addresses": [range]}), "a valid prefix is required"),
        ("ippools", json!({"addresses": [range], "prefix": -1}), "spec.prefix in body should be"),
        ("ippools", ip(9999, "10.0.0.1", &[range]), "spec.prefix in body should be"),
        ("ippools", ip(33, "10.0.0.1", &[range]), "provided prefix is not valid"),
        ("ippools", ip(24, "10.0.0.1", &["10.0.0.25", "garbage"]), not_address),
        ("ippools", ip(24, "10.0.0.1", &["10.0.0.10-10.0.0.5"]), not_address),
        ("ippools", ip(24, "10.0.0.1", &["10.0.0.10/33"]), not_address),
        ("ippools", ip(24, "10.0.0.1", &["10.0.0.25", "10.0.1.27"]), other),
        ("ippools", ip(24, "10.0.0.1", &["10.0.1.0/24", range]), other),
        ("ippools", ip(24, "10.0.0.1", &["10.0.0.0/23", range]), other),
        ("ippools", ip(112, "fd01::1", &["fd01::3", "fd01::ffff:ffff"]), other),
        ("ippools", ip(24, "10.0.0.1", &[range, "fd00::1"]), "provided addresses are of mixed IP families"),
        ("ippools", ip(24, "fd00::1", &[range]), mixed_gateway),
        ("ippools", ip(24, "10.0.0.1", &["fd00::1-fd00::5"]), mixed_gateway),
        ("ippools", excluding(&["10.0.0.11", "fd00::1"]), mixed_excluded),
        ("ippools", excluding(&["fd00::1"]), mixed_excluded),
        ("ippools", excluding(&["garbage"]), not_address),
        ("prefixpools", json!({}), "prefixes is required"),
        ("prefixpools", of(&["fd00::1"], json!({})), not_cidr),
        ("prefixpools", of(&["fd00::1-fd00::2"], json!({})), not_cidr),
        ("prefixpools", of(&["fd00::/129"], json!({})), not_cidr),
        ("prefixpools", of(&["fd00::1/64"], json!({})), "CIDR must be network-aligned"),
        (
            "prefixpools",
            of(&["fd00::/64", "fd00::/65"], json!({})),
            "CIDR prefix length must be <= allocationPrefixLength (64)",
        ),
        ("prefixpools", of(&["fd00::/64", "10.0.0.0/24"], json!({})), "prefixes are of mixed IP families"),
        (
            "prefixpools",
            of(&["fd00::/64"], json!({"gateway": "10.0.0.1"})),
            "gateway and prefixes are of mixed IP families",
        ),
        ("prefixpools", of(&["fd00::/64"], json!({"gateway": "garbage:"})), "gateway is invalid"),
        (
            "prefixpools",
            of(&["fd00::/64"], json!({"excludedPrefixes": ["10.0.0.1"]})),
            "excluded prefixes are of mixed IP families",
        ),
        (
            "prefixpools",
            of(&["fd00::/64"], json!({"allocationPrefixLength": 0})),
            "should be greater than or equal",
        ),
        ("prefixpools", of(&["10.0.0.0/24"], json!({})), "allocationPrefixLength is required for IPv4"),
        // A subnet of ipamd is at most a /8.
        ("prefixpools", of(&["fc00::/64", "fd00::/64"], json!({})), "is not inside one subnet of ipamd"),
    ];
    let mut grace = ip(24, "10.0.0.1", &[range]);
    grace["addressReuseGracePeriodSeconds"] = (-1).into();
    table.push(("ippools", grace, "spec.addressReuseGracePeriodSeconds in body should be"));
    let (mut by_rules, mut shown) = (0, 0);
    for (index, (plural, spec, part)) in table.into_iter().enumerate() {
        let name = format!("p{index}");
        let made =
            scene.management.make(&scene.management.namespace, plural, &name, json!({"spec": spec})).await;
        let message = match made {
            Err((422, message)) => {
                by_rules += 1;
                message
            }
            Err(refusal) => panic!("{spec}: {refusal:?}"),
            Ok(_) => {
                shown += 1;
                scene.reason(plural, &name, "InvalidField").await
            }
        };
        assert!(message.contains(part), "{spec}: {message}");
    }
    println!("c5_3: {by_rules} refused by rules, {shown} by conditions");
    assert!(by_rules > 10 && shown > 10, "{by_rules} {shown}");
    let pools: Vec<Value> = crate::support::ask::list(&scene.ask(), "/v1/pools").await;
    assert!(pools.is_empty(), "{pools:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_refused_pool_is_corrected_and_serves_its_claims() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.5"], "prefix": 24})).await;
    scene.claim("m-0", "web").await;
    scene.reason("ippools", "web", "InvalidField").await;
    let message = scene.reason("ipaddressclaims", "m-0", "PoolNotReady").await;
    assert!(message.contains("is refused") && message.contains("/addresses/0"), "{message}");
    let claim = scene.get("ipaddressclaims", "m-0").await.unwrap();
    assert!(claim["metadata"].get("finalizers").is_none(), "a claim without an address is free to go");
    let patch = json!({"spec": {"addresses": ["10.0.0.5-10.0.0.10"]}});
    scene.management.patch(&scene.path("ippools", "web"), patch).await.unwrap();
    assert_eq!(scene.fulfilled("m-0").await, "10.0.0.5/24");
    until("the pool shows its generation", async || {
        let pool = scene.get("ippools", "web").await.unwrap();
        let (state, reason, _) = ready(&pool);
        let is_shown = state == "True" && reason == "Applied" && pool["status"]["observedGeneration"] == 2;
        if is_shown { Ok(()) } else { Err(pool.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_fields_that_decide_on_a_place_are_immutable() {
    let scene = Scene::start(1).await;
    let network = scene.network().await;
    let spec = json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "network": network});
    scene.serving_pool("ippools", "web", spec).await;
    scene.serving_pool("prefixpools", "blocks", json!({"prefixes": ["fd00::/62"], "network": network})).await;
    scene.object("ippools", "rack", json!({"spec": {"poolRef": {"name": "rack"}}})).await;
    let change = async |plural: &str, name: &str, spec: Value| {
        scene.management.patch(&scene.path(plural, name), json!({"spec": spec})).await
    };
    for (plural, name, spec, part) in [
        ("ippools", "web", json!({"network": "other"}), "network is immutable"),
        ("ippools", "web", json!({"network": null}), "network is immutable"),
        ("ippools", "rack", json!({"poolRef": {"name": "other"}}), "poolRef is immutable"),
        (
            "ippools",
            "rack",
            json!({"poolRef": null, "addresses": ["10.0.0.1"], "prefix": 24}),
            "poolRef is immutable",
        ),
        ("prefixpools", "blocks", json!({"network": null}), "network is immutable"),
        (
            "prefixpools",
            "blocks",
            json!({"allocationPrefixLength": 63}),
            "allocationPrefixLength is immutable",
        ),
    ] {
        let refusal = change(plural, name, spec.clone()).await.unwrap_err();
        assert!(refusal.0 == 422 && refusal.1.contains(part), "{spec}: {refusal:?}");
    }
    // The default written out is no change.
    change("prefixpools", "blocks", json!({"allocationPrefixLength": 64})).await.unwrap();
    // Addresses of another subnet would move the pool.
    change("ippools", "web", json!({"addresses": ["10.9.0.10"]})).await.unwrap();
    let message = scene.reason("ippools", "web", "ImmutableField").await;
    assert!(message.contains("/addresses") && message.contains("10.0.0.0/24"), "{message}");
    scene.claim("m-0", "web").await;
    assert_eq!(scene.fulfilled("m-0").await, "10.0.0.10/24", "the pool is as it was");
    change("ippools", "web", json!({"addresses": ["10.0.0.10-10.0.0.30"]})).await.unwrap();
    scene.reason("ippools", "web", "Applied").await;
    scene.shows("ippools", "web", "/ipAddresses/total", 21.into()).await;
}
