//! Claims that are fulfilled, and those that are of another provider.

use serde_json::{Value, json};

use super::management::{Management, unique};
use super::scene::{Scene, claim, ready};
use crate::support::ask::list;
use crate::support::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_1_a_claim_gets_an_object_of_its_name_with_owners_and_finalizers() {
    let scene = Scene::start(3).await;
    scene
        .pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "gateway": "10.0.0.1"}))
        .await;
    scene.reason("ippools", "web", "Applied").await;
    let begun = std::time::Instant::now();
    scene.claim("m-0", "web").await;
    assert_eq!(scene.fulfilled("m-0").await, "10.0.0.10/24");
    println!("c5_1: fulfilled after {} ms", begun.elapsed().as_millis());
    let claim = scene.get("ipaddressclaims", "m-0").await.unwrap();
    let pool = scene.get("ippools", "web").await.unwrap();
    let address = scene.get("ipaddresses", "m-0").await.unwrap();
    assert_eq!(ready(&claim), ("True".to_owned(), "Allocated".to_owned(), String::new()));
    assert_eq!(claim["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]));
    assert_eq!(address["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]));
    let owner = |version: Value, kind: &str, object: &Value, is_controller: bool| {
        json!({
            "apiVersion": version, "kind": kind, "name": object["metadata"]["name"],
            "uid": object["metadata"]["uid"], "controller": is_controller, "blockOwnerDeletion": true,
        })
    };
    let owners = json!([
        owner(claim["apiVersion"].clone(), "IPAddressClaim", &claim, true),
        owner(pool["apiVersion"].clone(), "IPPool", &pool, false),
    ]);
    assert_eq!(address["metadata"]["ownerReferences"], owners);
    assert_eq!(
        address["spec"],
        json!({
            "claimRef": {"name": "m-0"}, "poolRef": claim["spec"]["poolRef"],
            "address": "10.0.0.10", "prefix": 24, "gateway": "10.0.0.1",
        })
    );
    scene.delete("ipaddressclaims", "m-0").await;
    scene.gone("ipaddressclaims", "m-0").await;
    scene.gone("ipaddresses", "m-0").await;
    assert!(scene.held().await.is_empty());
    scene.delete("ippools", "web").await;
    scene.gone("ippools", "web").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_2_claims_on_other_kinds_are_left_alone() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    let mut made = Vec::new();
    for (name, group, kind) in [
        ("of-in-cluster", "ipam.cluster.x-k8s.io", "InClusterIPPool"),
        ("of-unknown-kind", "ipam.ipamd.internal", "UnknownPool"),
        ("of-another-group", "ipam.example", "IPPool"),
    ] {
        let mut object = claim(kind, "web");
        object["spec"]["poolRef"]["apiGroup"] = group.into();
        made.push((name, scene.object("ipaddressclaims", name, object).await));
    }
    // The watch has brought the former claims by the time that a later one is served, also for an update.
    scene.claim("own", "web").await;
    scene.fulfilled("own").await;
    for (name, object) in made {
        assert_eq!(scene.get("ipaddressclaims", name).await.unwrap(), object, "{name}: nothing was written");
        assert!(object["metadata"].get("finalizers").is_none(), "{name}");
        assert_eq!(scene.get("ipaddresses", name).await, None, "{name}");
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
    }
    assert_eq!(scene.addresses().await.into_keys().collect::<Vec<_>>(), ["own"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_pools_of_one_name_give_the_same_addresses_independently() {
    let mut management = Management::start().await;
    let (first, second) = (management.namespace.clone(), unique("other"));
    management.add_namespace(&second).await;
    let scene = Scene::of(management, 1, "network_per_namespace = true").await;
    let pool =
        || json!({"spec": {"addresses": ["10.0.0.50", "10.0.0.128"], "prefix": 24, "gateway": "10.0.0.1"}});
    let pools = [(&first, "ippools"), (&second, "ippools"), (&first, "globalippools")];
    // A global pool is seen by all tests of a cluster.
    let web = unique("web");
    for (namespace, plural) in pools {
        scene.management.make(namespace, plural, &web, pool()).await.unwrap();
    }
    let of = ("IPPool", &*web);
    for (name, address) in [("a", "10.0.0.50/24"), ("b", "10.0.0.128/24")] {
        for namespace in [&first, &second] {
            scene.claim_in(namespace, name, of).await;
            assert_eq!(scene.fulfilled_in(namespace, name).await, address, "{namespace}");
        }
    }
    // Two claims of one name in two namespaces are two claims of the global pool.
    for (namespace, address) in [(&first, "10.0.0.50/24"), (&second, "10.0.0.128/24")] {
        scene.claim_in(namespace, "c", ("GlobalIPPool", &web)).await;
        assert_eq!(scene.fulfilled_in(namespace, "c").await, address, "{namespace}");
    }
    assert_eq!(scene.held().await.len(), 6);
    // A network of its own and a network by name exclude each other.
    let mut named = pool();
    named["spec"]["network"] = "blue".into();
    scene.object("ippools", "named", named).await;
    let message = scene.reason("ippools", "named", "InvalidField").await;
    assert!(message.contains("/network") && message.contains("each namespace has a network"), "{message}");
    // The deletion of one ends none of the others.
    for name in ["a", "b", "c"] {
        scene.delete("ipaddressclaims", name).await;
    }
    scene.delete("ippools", &web).await;
    scene.gone("ippools", &web).await;
    until("the other namespace alone has addresses", async || {
        let held = scene.held().await;
        match held.len() == 3 && held.iter().all(|one| one.endpoint.namespace.as_str() == second) {
            true => Ok(()),
            false => Err(format!("{held:?}")),
        }
    })
    .await;
    for (name, address) in [("a", "10.0.0.50/24"), ("c", "10.0.0.128/24")] {
        assert_eq!(scene.fulfilled_in(&second, name).await, address);
    }
    let networks = async || {
        let all: Vec<Value> = list(&scene.ask(), "/v1/networks").await;
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let present = networks().await;
    assert_eq!(present.len(), 2, "the default network and that of the other namespace: {present:?}");
    for name in ["a", "b", "c"] {
        let path = format!("{}/{name}", scene.management.collection(&second, "ipaddressclaims"));
        scene.management.delete(&path).await;
    }
    for (namespace, plural) in &pools[1..] {
        let path = format!("{}/{web}", scene.management.collection(namespace, plural));
        scene.management.delete(&path).await;
    }
    scene.delete("ippools", "named").await;
    // A network goes with the last pool of its namespace.
    until("only the default network is left", async || {
        let (left, held) = (networks().await, scene.held().await);
        if left == ["default"] && held.is_empty() { Ok(()) } else { Err(format!("{left:?} {held:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_global_pool_serves_all_namespaces() {
    let mut management = Management::start().await;
    let (first, second) = (management.namespace.clone(), unique("other"));
    management.add_namespace(&second).await;
    let scene = Scene::of(management, 1, "").await;
    let global = unique("web");
    let network = scene.network().await;
    let spec = json!({
        "addresses": ["10.0.0.2-10.0.0.254"], "prefix": 24, "gateway": "10.0.0.1", "network": network,
    });
    scene.serving_pool("globalippools", &global, spec).await;
    for (namespace, name, address) in
        [(&first, "m-0", "10.0.0.2"), (&second, "m-0", "10.0.0.3"), (&second, "m-1", "10.0.0.4")]
    {
        scene.claim_in(namespace, name, ("GlobalIPPool", &global)).await;
        assert_eq!(scene.fulfilled_in(namespace, name).await, format!("{address}/24"));
    }
    // A pool of a namespace is unknown in another one.
    let elsewhere = json!({"addresses": ["10.1.0.2"], "prefix": 24, "network": network});
    scene.serving_pool("ippools", "own", elsewhere).await;
    scene.claim_in(&second, "m-2", ("IPPool", "own")).await;
    let path = format!("{}/m-2", scene.management.collection(&second, "ipaddressclaims"));
    until("the claim shows that its pool is missing", async || {
        let (_, reason, message) = ready(&scene.management.get(&path).await.unwrap());
        let is_shown = reason == "PoolNotReady" && message.contains("does not exist");
        if is_shown { Ok(()) } else { Err(format!("{reason}: {message}")) }
    })
    .await;
    for (namespace, name) in [(&first, "m-0"), (&second, "m-0"), (&second, "m-1"), (&second, "m-2")] {
        scene
            .management
            .delete(&format!("{}/{name}", scene.management.collection(namespace, "ipaddressclaims")))
            .await;
    }
    scene.delete("globalippools", &global).await;
    scene.gone("globalippools", &global).await;
    assert!(scene.held().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_waiting_claim_has_the_address_that_is_released() {
    let scene = Scene::start(1).await;
    let network = scene.network().await;
    let spec = json!({
        "addresses": ["10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.255"], "prefix": 24, "gateway": "10.0.1.1",
        "network": network,
    });
    scene.serving_pool("ippools", "web", spec).await;
    scene.claim("first", "web").await;
    assert_eq!(scene.fulfilled("first").await, "10.0.1.2/24");
    scene.claim("second", "web").await;
    scene.reason("ipaddressclaims", "second", "PoolExhausted").await;
    assert_eq!(scene.get("ipaddresses", "second").await, None);
    let begun = std::time::Instant::now();
    scene.delete("ipaddressclaims", "first").await;
    assert_eq!(scene.fulfilled("second").await, "10.0.1.2/24");
    println!("c5_3: served {} ms after the deletion", begun.elapsed().as_millis());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_b4_a_pool_goes_with_its_last_claim() {
    let scene = Scene::start(1).await;
    let network = scene.network().await;
    let spec = json!({
        "addresses": ["10.0.0.10-10.0.0.11"], "prefix": 24, "addressReuseGracePeriodSeconds": 300,
        "network": network,
    });
    scene.serving_pool("ippools", "web", spec).await;
    for name in ["a", "b"] {
        scene.claim(name, "web").await;
        scene.fulfilled(name).await;
    }
    // The grace period delays the address, and not the claim.
    scene.delete("ipaddressclaims", "a").await;
    scene.gone("ipaddressclaims", "a").await;
    scene.claim("c", "web").await;
    scene.reason("ipaddressclaims", "c", "PoolExhausted").await;
    scene.delete("ippools", "web").await;
    scene.claim("d", "web").await;
    let message = scene.reason("ipaddressclaims", "d", "PoolNotReady").await;
    assert!(message.contains("is being deleted"), "{message}");
    let pool = scene.get("ippools", "web").await.expect("the pool has a claim");
    assert_eq!(pool["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]));
    assert_eq!(scene.addresses().await.into_keys().collect::<Vec<_>>(), ["b"]);
    // Cooling addresses keep no pool.
    for name in ["b", "c", "d"] {
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
    }
    scene.gone("ippools", "web").await;
    let pools: Vec<Value> = list(&scene.ask(), "/v1/pools").await;
    assert!(pools.is_empty(), "{pools:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_filter_selects_claims_and_pools() {
    const LABEL: &str = "cluster.x-k8s.io/watch-filter";
    let scene = Scene::of(Management::start().await, 1, "watch_filter = \"blue\"").await;
    let network = scene.network().await;
    let label = |value: &str| json!({"labels": {LABEL: value}});
    let spec = json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "network": network});
    scene.object("ippools", "web", json!({"metadata": label("blue"), "spec": spec})).await;
    scene.reason("ippools", "web", "Applied").await;
    let other = json!({"addresses": ["10.0.1.10"], "prefix": 24, "network": network});
    scene.object("ippools", "other", json!({"metadata": label("green"), "spec": other})).await;
    scene.claim_with("unlabelled", ("IPPool", "web"), json!({})).await;
    scene.claim_with("green", ("IPPool", "web"), json!({"metadata": label("green")})).await;
    scene.claim_with("blue", ("IPPool", "web"), json!({"metadata": label("blue")})).await;
    assert_eq!(scene.fulfilled("blue").await, "10.0.0.10/24");
    scene.claim_with("of-other", ("IPPool", "other"), json!({"metadata": label("blue")})).await;
    scene.reason("ipaddressclaims", "of-other", "PoolNotReady").await;
    for (plural, name) in
        [("ipaddressclaims", "unlabelled"), ("ipaddressclaims", "green"), ("ippools", "other")]
    {
        let object = scene.get(plural, name).await.unwrap();
        assert!(object["metadata"].get("finalizers").is_none() && object.get("status").is_none(), "{object}");
    }
    // A label that is added later counts, and so does one that is taken away.
    let relabel = async |plural: &str, name: &str, value: Option<&str>| {
        let patch = json!({"metadata": {"labels": {LABEL: value}}});
        scene.management.patch(&scene.path(plural, name), patch).await.unwrap();
    };
    relabel("ipaddressclaims", "unlabelled", Some("blue")).await;
    assert_eq!(scene.fulfilled("unlabelled").await, "10.0.0.11/24");
    // Without the label a claim is another provider's, and so is its object.
    relabel("ipaddressclaims", "blue", None).await;
    scene.claim_with("marker", ("IPPool", "web"), json!({"metadata": label("blue")})).await;
    scene.fulfilled("marker").await;
    let object = scene.get("ipaddresses", "blue").await.unwrap();
    scene.delete("ipaddresses", "blue").await;
    scene.delete("ipaddressclaims", "blue").await;
    for name in ["later", "last"] {
        scene.claim_with(name, ("IPPool", "web"), json!({"metadata": label("blue")})).await;
        scene.fulfilled(name).await;
    }
    for plural in ["ipaddressclaims", "ipaddresses"] {
        let left = scene.get(plural, "blue").await.expect("another provider has to let it go");
        assert_eq!(left["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]), "{plural}");
    }
    let left = scene.get("ipaddresses", "blue").await.unwrap();
    assert_eq!(left["metadata"]["uid"], object["metadata"]["uid"], "it is not created again");
    assert_eq!(scene.addresses().await["blue"], "10.0.0.10", "it is not released");
    relabel("ipaddressclaims", "blue", Some("blue")).await;
    scene.gone("ipaddressclaims", "blue").await;
    assert!(!scene.addresses().await.contains_key("blue"));
}
