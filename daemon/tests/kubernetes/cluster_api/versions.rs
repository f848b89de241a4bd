//! Versions of the contract: one of them, both, and changes of them.

use serde_json::{Value, json};
use test_apiserver::{ApiServer, ClusterApi, ClusterApiVersion, Fault, Stage};

use super::management::Management;
use super::scene::Scene;
use crate::support::until;

const BOTH: [ClusterApi; 2] = [
    ClusterApi::Both { storage: ClusterApiVersion::V1Beta1 },
    ClusterApi::Both { storage: ClusterApiVersion::V1Beta2 },
];

/// Scene with these versions; none if the management cluster is a real one.
async fn scene(versions: ClusterApi, version: &'static str) -> Option<Scene> {
    let management = Management::serving(versions, version).await;
    if management.own().is_none() {
        println!("c5_13: a real management cluster has the versions that it has");
        return None;
    }
    Some(Scene::of(management, 1, "").await)
}

fn own(scene: &Scene) -> &ApiServer {
    scene.management.own().unwrap()
}

/// Conditions `Ready` without their times: that of `metav1`, and the former one of Cluster API.
fn families(claim: &Value) -> [Value; 2] {
    let status = &claim["status"];
    let families = match claim["apiVersion"].as_str().unwrap() {
        "ipam.cluster.x-k8s.io/v1beta1" => [&status["v1beta2"]["conditions"], &status["conditions"]],
        _ => [&status["conditions"], &status["deprecated"]["v1beta1"]["conditions"]],
    };
    families.map(|all| {
        let all = all.as_array().cloned().unwrap_or_default();
        let mut ready = all.into_iter().find(|one| one["type"] == "Ready").unwrap_or_default();
        assert!(ready["lastTransitionTime"].is_string(), "{claim}");
        ready.as_object_mut().unwrap().remove("lastTransitionTime");
        ready
    })
}

/// Results of a fulfilled claim, in the shape of any version.
fn fulfilled() -> [Value; 2] {
    [
        json!({
            "type": "Ready", "status": "True", "reason": "Allocated", "message": "", "observedGeneration": 1,
        }),
        json!({"type": "Ready", "status": "True"}),
    ]
}

/// Results of a claim on a pool without a free address.
fn exhausted(message: &str) -> [Value; 2] {
    [
        json!({
            "type": "Ready", "status": "False", "reason": "PoolExhausted", "message": message,
            "observedGeneration": 1,
        }),
        json!({
            "type": "Ready", "status": "False", "severity": "Warning", "reason": "PoolExhausted",
            "message": message,
        }),
    ]
}

/// Asserts that a claim is fulfilled, and shows that in both families.
async fn is_fulfilled(scene: &Scene, name: &str) -> String {
    let address = scene.fulfilled(name).await;
    let claim = scene.get("ipaddressclaims", name).await.unwrap();
    assert_eq!((families(&claim), &claim["status"]["addressRef"]), (fulfilled(), &json!({"name": name})));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_13_each_version_shows_the_same() {
    for (versions, version) in [
        (ClusterApi::V1Beta1Only, "v1beta1"),
        (ClusterApi::V1Beta2Only, "v1beta2"),
        (BOTH[0], "v1beta1"),
        (BOTH[1], "v1beta2"),
    ] {
        let Some(scene) = scene(versions, version).await else { return };
        scene.pool("web", json!({"addresses": ["10.0.0.10"], "prefix": 24, "gateway": "10.0.0.1"})).await;
        scene.claim("a", "web").await;
        assert_eq!(is_fulfilled(&scene, "a").await, "10.0.0.10/24");
        let address = scene.get("ipaddresses", "a").await.unwrap();
        let pool = json!({"apiGroup": "ipam.ipamd.internal", "kind": "IPPool", "name": "web"});
        let spec = json!({
            "claimRef": {"name": "a"}, "poolRef": pool, "address": "10.0.0.10", "prefix": 24,
            "gateway": "10.0.0.1",
        });
        assert_eq!(address["spec"], spec, "{versions:?}");
        scene.claim("b", "web").await;
        let message = scene.reason("ipaddressclaims", "b", "PoolExhausted").await;
        let claim = scene.get("ipaddressclaims", "b").await.unwrap();
        assert_eq!(families(&claim), exhausted(&message), "{versions:?}");
        let reference = &claim["status"]["addressRef"];
        assert!(
            reference.is_null() || *reference == json!({}) || *reference == json!({"name": ""}),
            "{claim}"
        );
        scene.delete("ipaddressclaims", "a").await;
        scene.gone("ipaddressclaims", "a").await;
        assert_eq!(is_fulfilled(&scene, "b").await, "10.0.0.10/24");
        scene.delete("ipaddressclaims", "b").await;
        scene.gone("ipaddressclaims", "b").await;
        assert!(scene.held().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_13_the_storage_version_changes_under_load() {
    const CLAIMS: usize = 60;
    let Some(scene) = scene(BOTH[0], "v1beta2").await else { return };
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.200"], "prefix": 24})).await;
    let name = |number: usize| format!("m-{number}");
    let is_deleted = |number: usize| number % 3 == 1;
    for number in 0..CLAIMS {
        scene.claim(&name(number), "web").await;
        if number % 10 == 5 {
            own(&scene).serve_cluster_api(BOTH[number / 10 % 2]);
        }
        if let Some(former) = number.checked_sub(3).filter(|former| is_deleted(*former)) {
            scene.delete("ipaddressclaims", &name(former)).await;
        }
    }
    let mut addresses = Vec::new();
    for number in 0..CLAIMS {
        if is_deleted(number) && number + 3 < CLAIMS {
            scene.gone("ipaddressclaims", &name(number)).await;
        } else {
            addresses.push(is_fulfilled(&scene, &name(number)).await.replace("/24", ""));
        }
    }
    addresses.sort();
    let mut held: Vec<String> = scene.addresses().await.into_values().collect();
    held.sort();
    assert_eq!(addresses, held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_13_claims_go_on_in_the_version_that_is_left() {
    let Some(mut scene) = scene(BOTH[1], "v1beta2").await else { return };
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.11"], "prefix": 24})).await;
    scene.claim("before", "web").await;
    is_fulfilled(&scene, "before").await;
    for (versions, version, name) in
        [(ClusterApi::V1Beta1Only, "v1beta1", "down"), (ClusterApi::V1Beta2Only, "v1beta2", "up")]
    {
        // The claim has an address, and its object is on the way.
        let hold = Fault::Hold { verb: "create", plural: "ipaddresses", skip: 0, stage: Stage::Before };
        own(&scene).fault(hold);
        scene.claim(name, "web").await;
        own(&scene).held().await;
        let waits = format!("{name}-waits");
        scene.claim(&waits, "web").await;
        let message = scene.reason("ipaddressclaims", &waits, "PoolExhausted").await;
        own(&scene).serve_cluster_api(versions);
        scene.management.version = version;
        own(&scene).fault(Fault::Heal);
        for name in ["before", name] {
            is_fulfilled(&scene, name).await;
        }
        until("a claim that waits shows it in the version that is left", async || {
            let claim = scene.get("ipaddressclaims", &waits).await.unwrap();
            if families(&claim) == exhausted(&message) { Ok(()) } else { Err(claim.to_string()) }
        })
        .await;
        scene.delete("ipaddressclaims", name).await;
        is_fulfilled(&scene, &waits).await;
        scene.delete("ipaddressclaims", &waits).await;
        for name in [name, &waits] {
            scene.gone("ipaddressclaims", name).await;
            scene.gone("ipaddresses", name).await;
        }
        own(&scene).serve_cluster_api(BOTH[0]);
    }
    assert_eq!(scene.held().await.len(), 1);
}
