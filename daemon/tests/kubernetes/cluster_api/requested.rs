//! Claims whose address is determined beforehand: by an annotation, an allocation in ipamd, or an object.

use ipam_api::client::Call;
use serde_json::{Value, json};

use super::scene::{Scene, claim, ready};
use crate::support::{LONG, until};

const ADDRESS: &str = "ipam.ipamd.internal/address";

impl Scene {
    /// Members, and a pool of ten addresses in a network of its own.
    async fn with_pool() -> Self {
        let scene = Self::start(1).await;
        let network = scene.network().await;
        let spec = json!({
            "addresses": ["10.0.0.10-10.0.0.19"], "prefix": 24, "gateway": "10.0.0.1", "network": network,
            "addressReuseGracePeriodSeconds": 0,
        });
        scene.serving_pool("ippools", "web", spec).await;
        scene
    }

    async fn request(&self, name: &str, address: &str) {
        self.claim_with(name, ("IPPool", "web"), json!({"metadata": {"annotations": {ADDRESS: address}}}))
            .await;
    }

    /// Allocates an address of the pool for an endpoint of the realm.
    async fn hold(&self, name: &str, address: &str) {
        let pool = self.get("ippools", "web").await.unwrap();
        let endpoint = json!({"kind": "claim", "realm": self.realm, "namespace": self.management.namespace,
                              "name": name});
        let request = json!({
            "endpoint": endpoint, "lifecycle": "held",
            "interfaces": [{"name": "eth0", "ipv4_pools": [pool["status"]["pool"]], "addresses": [address]}],
        });
        let call = Call::post("/v1/allocations").json(&request).unwrap().within(LONG);
        let _: Value = self.ask().call(call).await.unwrap();
    }

    /// Releases what [`Self::hold`] allocated.
    async fn let_go(&self, name: &str) {
        let path = format!("/v1/endpoints/claim/{}/{}/{name}", self.realm, self.management.namespace);
        self.ask().send(Call::delete(path).within(LONG)).await.unwrap();
    }

    /// Deletes the object of a claim, and waits until it is back with the same values.
    async fn delete_object(&self, name: &str) {
        let before = self.get("ipaddresses", name).await.unwrap();
        self.delete("ipaddresses", name).await;
        until("the object is another one with the same values", async || {
            let now = self.get("ipaddresses", name).await.ok_or("it is missing")?;
            match now["metadata"]["uid"] != before["metadata"]["uid"] && now["spec"] == before["spec"] {
                true => Ok(()),
                false => Err(now.to_string()),
            }
        })
        .await;
    }

    /// Object of an address, as a backup or another management cluster has it.
    async fn import(&self, name: &str, pool: Value, address: &str) -> Value {
        let spec = json!({"claimRef": {"name": name}, "poolRef": pool, "address": address, "prefix": 24});
        self.object("ipaddresses", name, json!({"metadata": {}, "spec": spec})).await
    }
}

fn own_pool() -> Value {
    claim("IPPool", "web")["spec"]["poolRef"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_a_claim_requests_an_address() {
    let scene = Scene::with_pool().await;
    scene.request("free", "10.0.0.15").await;
    assert_eq!(scene.fulfilled("free").await, "10.0.0.15/24");
    for (name, address, part) in [
        ("taken", "10.0.0.15", "10.0.0.15"),
        ("outside", "10.0.0.99", "10.0.0.99"),
        ("gateway", "10.0.0.1", "10.0.0.1"),
        ("other-family", "fd00::1", "fd00::1"),
        ("invalid", "10.0.0.", "is not an IP address"),
        ("empty", "", "is not an IP address"),
    ] {
        scene.request(name, address).await;
        let message = scene.reason("ipaddressclaims", name, "AllocationFailed").await;
        println!("{name}: {message}");
        assert!(message.contains(part), "{name}: {message}");
        assert_eq!(scene.get("ipaddresses", name).await, None);
    }
    assert_eq!(scene.addresses().await.into_keys().collect::<Vec<_>>(), ["free"]);
    // Corrected, or without the request.
    scene.annotate("ipaddressclaims", "invalid", ADDRESS, Some("10.0.0.17")).await;
    assert_eq!(scene.fulfilled("invalid").await, "10.0.0.17/24");
    scene.annotate("ipaddressclaims", "outside", ADDRESS, None).await;
    assert_eq!(scene.fulfilled("outside").await, "10.0.0.10/24");
    // A change comes too late for a claim that is fulfilled, also if its object has to be created again.
    scene.annotate("ipaddressclaims", "free", ADDRESS, Some("10.0.0.18")).await;
    scene.request("marker", "10.0.0.18").await;
    assert_eq!(scene.fulfilled("marker").await, "10.0.0.18/24", "the change requests nothing");
    scene.delete_object("free").await;
    // The address of a claim that goes is given to the one that requests it.
    let begun = std::time::Instant::now();
    scene.delete("ipaddressclaims", "free").await;
    assert_eq!(scene.fulfilled("taken").await, "10.0.0.15/24");
    println!("c5_3: given {} ms after the deletion", begun.elapsed().as_millis());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_a_claim_gets_the_address_that_is_allocated_to_its_name() {
    let scene = Scene::with_pool().await;
    scene.hold("db-0", "10.0.0.14").await;
    scene.claim("other", "web").await;
    assert_eq!(scene.fulfilled("other").await, "10.0.0.10/24");
    scene.claim("db-0", "web").await;
    assert_eq!(scene.fulfilled("db-0").await, "10.0.0.14/24");
    assert_eq!(scene.get("ipaddresses", "db-0").await.unwrap()["spec"]["gateway"], "10.0.0.1");
    assert_eq!(scene.held().await.len(), 2);
    scene.delete("ipaddressclaims", "db-0").await;
    scene.gone("ipaddressclaims", "db-0").await;
    assert_eq!(scene.addresses().await.into_keys().collect::<Vec<_>>(), ["other"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_an_object_that_exists_is_adopted() {
    let scene = Scene::with_pool().await;
    let imported = scene.import("m-0", own_pool(), "10.0.0.16").await;
    scene.claim("m-0", "web").await;
    assert_eq!(scene.fulfilled("m-0").await, "10.0.0.16/24");
    let (claim, address) =
        (scene.get("ipaddressclaims", "m-0").await.unwrap(), scene.get("ipaddresses", "m-0").await.unwrap());
    assert_eq!(address["metadata"]["uid"], imported["metadata"]["uid"]);
    assert_eq!(address["spec"], imported["spec"], "an object never changes, also one without a gateway");
    assert_eq!(address["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]));
    let owners = address["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["uid"]), (2, &claim["metadata"]["uid"]));
    assert_eq!(scene.addresses().await["m-0"], "10.0.0.16");
    scene.delete_object("m-0").await;
    // An address that another holds, or that is not of the pool, is not taken from it.
    scene.hold("holder", "10.0.0.18").await;
    for (name, address) in [("taken", "10.0.0.18"), ("outside", "10.0.0.99")] {
        let imported = scene.import(name, own_pool(), address).await;
        scene.claim(name, "web").await;
        let message = scene.reason("ipaddressclaims", name, "AllocationFailed").await;
        assert!(message.contains(address), "{message}");
        assert_eq!(scene.get("ipaddresses", name).await.unwrap()["spec"], imported["spec"]);
    }
    assert_eq!(scene.addresses().await.into_keys().collect::<Vec<_>>(), ["holder", "m-0"]);
    scene.let_go("holder").await;
    assert_eq!(scene.fulfilled("taken").await, "10.0.0.18/24");
    for name in ["taken", "outside", "m-0"] {
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
        scene.gone("ipaddresses", name).await;
    }
    assert!(scene.held().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_3_an_object_of_another_provider_is_left_alone() {
    let scene = Scene::with_pool().await;
    let foreign = json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "web"});
    let of_another_pool = claim("IPPool", "other")["spec"]["poolRef"].clone();
    let mut made = Vec::new();
    for (name, pool) in [("m-0", foreign), ("m-1", of_another_pool)] {
        made.push((name, scene.import(name, pool, "10.0.0.16").await));
        scene.claim(name, "web").await;
        let message = scene.reason("ipaddressclaims", name, "AllocationFailed").await;
        assert!(message.contains(&format!("IPAddress {name} exists")), "{message}");
        let claim = scene.get("ipaddressclaims", name).await.unwrap();
        assert!(claim["status"].get("addressRef").is_none(), "{claim}");
    }
    for (name, object) in &made {
        assert_eq!(scene.get("ipaddresses", name).await.as_ref(), Some(object));
    }
    // A claim that goes takes nothing of it away.
    for (name, object) in &made {
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
        assert_eq!(scene.get("ipaddresses", name).await.as_ref(), Some(object));
        scene.claim(name, "web").await;
        scene.reason("ipaddressclaims", name, "AllocationFailed").await;
    }
    // Once the name is free the claims are served.
    for name in ["m-0", "m-1"] {
        scene.delete("ipaddresses", name).await;
        scene.fulfilled(name).await;
        assert_eq!(ready(&scene.get("ipaddressclaims", name).await.unwrap()).1, "Allocated");
    }
    assert_eq!(scene.held().await.len(), 2);
}
