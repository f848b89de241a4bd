//! Claims that are paused: by their Clusters, by their pools, and by themselves.

use serde_json::{Value, json};

use super::scene::Scene;

const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Reference of a claim to its Cluster.
const REFERENCES: [&str; 2] = ["spec", "label"];

/// Object that pauses a claim, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// Field of the Cluster.
    ClusterField,
    /// Annotation of the Cluster.
    ClusterAnnotation,
    /// Annotation of the pool.
    Pool,
    /// Annotation of the claim.
    Claim,
}

/// Case: a pause, and the reference of the claim to its Cluster.
#[derive(Debug, Clone, Copy)]
struct Case {
    pause: Pause,
    reference: &'static str,
}

impl Case {
    /// The six cases. Each is tested for a creation and for a deletion.
    fn all() -> Vec<Self> {
        let of_cluster = [Pause::ClusterField, Pause::ClusterAnnotation]
            .into_iter()
            .flat_map(|pause| REFERENCES.map(|reference| Self { pause, reference }));
        let others = [Pause::Pool, Pause::Claim].map(|pause| Self { pause, reference: "none" });
        of_cluster.chain(others).collect()
    }

    /// Name of the objects of the case.
    fn name(self) -> String {
        format!("{:?}-{}", self.pause, self.reference).to_lowercase()
    }

    fn number(self) -> usize {
        Self::all().iter().position(|one| one.name() == self.name()).unwrap()
    }

    /// Creates the Cluster and the pool of the case.
    async fn prepare(self, scene: &Scene) {
        let name = self.name();
        scene.object("clusters", &name, json!({"spec": {}})).await;
        let addresses = format!("10.{}.0.10-10.{0}.0.11", self.number());
        scene.pool(&name, json!({"addresses": [addresses], "prefix": 24})).await;
    }

    /// Creates a claim on the pool.
    async fn claim(self, scene: &Scene, claim: &str) {
        let name = self.name();
        let mut more = json!({});
        match self.reference {
            "spec" => more["spec"] = json!({"clusterName": name}),
            "label" => more["metadata"] = json!({"labels": {"cluster.x-k8s.io/cluster-name": name}}),
            _ => {}
        }
        if self.pause == Pause::Claim {
            more["metadata"] = json!({"annotations": {PAUSED: ""}});
        }
        scene.claim_with(claim, ("IPPool", &name), more).await;
    }

    /// Pauses or continues a claim.
    async fn pause(self, scene: &Scene, claim: &str, is_paused: bool) {
        let name = self.name();
        let value = is_paused.then_some("");
        match self.pause {
            Pause::ClusterField => scene.change("clusters", &name, json!({"paused": is_paused})).await,
            Pause::ClusterAnnotation => scene.annotate("clusters", &name, PAUSED, value).await,
            Pause::Pool => scene.annotate("ippools", &name, PAUSED, value).await,
            Pause::Claim => scene.annotate("ipaddressclaims", claim, PAUSED, value).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_6_a_paused_claim_is_neither_fulfilled_nor_released() {
    let scene = Scene::start(1).await;
    let cases = Case::all();
    assert_eq!(2 * cases.len(), 12);
    for case in &cases {
        case.prepare(&scene).await;
        scene.reason("ippools", &case.name(), "Applied").await;
        if case.pause != Pause::Claim {
            case.pause(&scene, "", true).await;
        }
    }
    // A pause of another object has to be known before a claim is created, as before a move of a Cluster.
    scene.settle().await;
    for case in &cases {
        case.claim(&scene, &case.name()).await;
    }
    scene.settle().await;
    for case in &cases {
        let claim = scene.get("ipaddressclaims", &case.name()).await.unwrap();
        let is_untouched =
            claim["metadata"]["finalizers"].is_null() && claim["status"].get("conditions").is_none();
        assert!(is_untouched, "{case:?}: {claim}");
        assert_eq!(scene.get("ipaddresses", &case.name()).await, None, "{case:?}");
    }
    assert!(scene.held().await.is_empty());

    for case in &cases {
        case.pause(&scene, &case.name(), false).await;
        assert_eq!(scene.fulfilled(&case.name()).await, format!("10.{}.0.10/24", case.number()), "{case:?}");
        case.pause(&scene, &case.name(), true).await;
    }
    scene.settle().await;
    for case in &cases {
        scene.delete("ipaddressclaims", &case.name()).await;
    }
    scene.settle().await;
    for case in &cases {
        let claim = scene.get("ipaddressclaims", &case.name()).await.unwrap();
        assert!(claim["metadata"]["deletionTimestamp"].is_string(), "{case:?}: {claim}");
        let address = scene.get("ipaddresses", &case.name()).await.unwrap();
        assert_eq!(address["metadata"]["deletionTimestamp"], Value::Null, "{case:?}");
    }
    assert_eq!(scene.held().await.len(), cases.len());

    for case in &cases {
        case.pause(&scene, &case.name(), false).await;
        scene.gone("ipaddressclaims", &case.name()).await;
        assert_eq!(scene.get("ipaddresses", &case.name()).await, None, "{case:?}");
    }
    assert!(scene.held().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_6_a_claim_of_a_missing_cluster_is_not_fulfilled_and_is_released() {
    let scene = Scene::start(1).await;
    scene.pool("web", json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24})).await;
    let labels = json!({"labels": {"cluster.x-k8s.io/cluster-name": "prod"}});
    for (name, more) in
        [("spec", json!({"spec": {"clusterName": "prod"}})), ("label", json!({"metadata": labels}))]
    {
        scene.claim_with(name, ("IPPool", "web"), more.clone()).await;
        let message = scene.reason("ipaddressclaims", name, "AllocationFailed").await;
        assert_eq!(message, "Cluster prod does not exist");
        // One that never gets an address.
        let unserved = format!("{name}-0");
        scene.claim_with(&unserved, ("IPPool", "web"), more).await;
        scene.reason("ipaddressclaims", &unserved, "AllocationFailed").await;
        scene.delete("ipaddressclaims", &unserved).await;
        scene.gone("ipaddressclaims", &unserved).await;
    }
    assert!(scene.held().await.is_empty());
    scene.object("clusters", "prod", json!({"spec": {}})).await;
    for name in ["spec", "label"] {
        scene.fulfilled(name).await;
    }
    // The deletion of the Cluster ends nothing by itself, and delays no release.
    scene.delete("clusters", "prod").await;
    scene.gone("clusters", "prod").await;
    assert_eq!(scene.held().await.len(), 2);
    for name in ["spec", "label"] {
        scene.fulfilled(name).await;
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
        scene.gone("ipaddresses", name).await;
    }
    assert!(scene.held().await.is_empty());
}
