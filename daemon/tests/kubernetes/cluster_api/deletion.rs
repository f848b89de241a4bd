//! Deletions in any order, and addresses that are deleted by hand.

use futures::future::join_all;
use ipam_api::resource::Allocation;
use serde_json::{Value, json};

use super::management::unique;
use super::scene::{Scene, claim, ready};
use crate::support::ask::get;
use crate::support::until;

/// Objects that are deleted one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Cluster,
    Pool,
    Claims,
    Namespace,
}

const PARTS: [Part; 4] = [Part::Cluster, Part::Pool, Part::Claims, Part::Namespace];
/// Claims of a case. The pool has room for two.
const CLAIMS: [&str; 3] = ["a", "b", "c"];
/// Further deletion options: the garbage collector waits for dependents, or leaves them.
const PROPAGATIONS: [&str; 3] = ["Background", "Foreground", "Orphan"];

/// Namespace whose parts are deleted in an order.
struct Case<'a> {
    scene: &'a Scene,
    number: usize,
    namespace: String,
    order: [Part; 4],
    is_prefix: bool,
}

/// All orders.
fn orders() -> Vec<[Part; 4]> {
    let mut all = vec![Vec::new()];
    for _ in PARTS {
        let longer = all.iter().flat_map(|order: &Vec<Part>| {
            let left = PARTS.iter().filter(|part| !order.contains(part));
            left.map(|part| order.iter().chain([part]).copied().collect::<Vec<_>>()).collect::<Vec<_>>()
        });
        all = longer.collect();
    }
    all.into_iter().map(|order| order.try_into().unwrap()).collect()
}

impl Case<'_> {
    fn pool(&self) -> (&'static str, &'static str) {
        if self.is_prefix { ("prefixpools", "PrefixPool") } else { ("ippools", "IPPool") }
    }

    fn path(&self, plural: &str, name: &str) -> String {
        format!("{}/{name}", self.scene.management.collection(&self.namespace, plural))
    }

    async fn make(&self, plural: &str, name: &str, object: Value) {
        self.scene.management.make(&self.namespace, plural, name, object).await.unwrap();
    }

    async fn prepare(&self) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.scene.management.create("/api/v1/namespaces", namespace).await.unwrap();
        self.make("clusters", "prod", json!({"spec": {}})).await;
        let (number, (plural, kind)) = (self.number, self.pool());
        let spec = match self.is_prefix {
            true => json!({"prefixes": [format!("fd00:{number:x}::/63")]}),
            false => json!({"addresses": [format!("10.{number}.0.10-10.{number}.0.11")], "prefix": 24}),
        };
        self.make(plural, "pool", json!({"spec": spec})).await;
        for name in CLAIMS {
            let mut claim = claim(kind, "pool");
            claim["spec"]["clusterName"] = "prod".into();
            self.make("ipaddressclaims", name, claim).await;
        }
        self.show(&["Allocated", "Allocated", "PoolExhausted"]).await;
    }

    /// Waits until the claims show these reasons, in any order.
    async fn show(&self, reasons: &[&str]) {
        until(&format!("the claims of {} show {reasons:?}", self.namespace), async || {
            let mut shown = Vec::new();
            for name in CLAIMS {
                let claim = self.scene.management.get(&self.path("ipaddressclaims", name)).await;
                shown.push(ready(&claim.unwrap_or_default()).1);
            }
            shown.sort();
            if shown == reasons { Ok(()) } else { Err(format!("{shown:?}")) }
        })
        .await;
    }

    async fn delete(&self, part: Part) {
        let management = &self.scene.management;
        let paths = match part {
            Part::Cluster => vec![self.path("clusters", "prod")],
            Part::Pool => vec![self.path(self.pool().0, "pool")],
            Part::Claims => CLAIMS.iter().map(|name| self.path("ipaddressclaims", name)).collect(),
            Part::Namespace => {
                return management.delete(&format!("/api/v1/namespaces/{}", self.namespace)).await;
            }
        };
        let propagation = PROPAGATIONS[self.number % PROPAGATIONS.len()];
        for path in paths {
            management.delete(&format!("{path}?propagationPolicy={propagation}")).await;
        }
    }

    /// True if a claim has to have its address after a number of deletions.
    fn is_served(&self, deletions: usize) -> bool {
        let deleted = &self.order[..deletions];
        !deleted.contains(&Part::Claims) && !deleted.contains(&Part::Namespace)
    }

    async fn gone(&self) {
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        until(&format!("{} is gone: {:?}", self.namespace, self.order), async || {
            let mut left = Vec::new();
            for plural in ["clusters", "ipaddressclaims", "ipaddresses", self.pool().0] {
                let list = self.scene.management.collection(&self.namespace, plural);
                let list = self.scene.management.get(&list).await.unwrap();
                left.extend(list["items"].as_array().cloned().unwrap_or_default());
            }
            match self.scene.management.get(&path).await {
                None if left.is_empty() => Ok(()),
                _ => Err(format!("{left:?}")),
            }
        })
        .await;
    }
}

/// Items of a list of the servers that belong to the realm.
async fn of_realm(scene: &Scene, plural: &str) -> Vec<Value> {
    let manager = format!("cluster-api/{}", scene.realm);
    let list = format!("/v1/{plural}?limit=1000");
    let page: Value = get(&scene.ask(), &list).await.unwrap();
    let mut items = page["items"].as_array().unwrap().clone();
    items.retain(|one| one["realm"] == *scene.realm || one["managed_by"] == *manager);
    items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_7_everything_goes_in_whatever_order_it_is_deleted() {
    let scene = Scene::start(1).await;
    let case = |number: usize, order| Case {
        scene: &scene,
        number,
        namespace: unique("order"),
        order,
        is_prefix: number % 2 == 1,
    };
    // Each order with time between the deletions, and without.
    let orders = orders().into_iter();
    let cases: Vec<Case<'_>> = orders
        .flat_map(|order| [order, order])
        .enumerate()
        .map(|(number, order)| case(number, order))
        .collect();
    assert_eq!(cases.len(), 48);
    join_all(cases.iter().map(Case::prepare)).await;
    let (slow, fast): (Vec<&Case<'_>>, Vec<&Case<'_>>) =
        cases.iter().partition(|case| case.number / 2 % 2 == 0);
    println!("c5_7: {} cases", cases.len());
    for case in &fast {
        for part in case.order {
            case.delete(part).await;
        }
    }
    for deletions in 1..=PARTS.len() {
        join_all(slow.iter().map(|case| case.delete(case.order[deletions - 1]))).await;
        scene.settle().await;
        for case in slow.iter().filter(|case| case.is_served(deletions)) {
            // What is fulfilled stays so without its Cluster and its pool.
            let is_without_pool = case.order[..deletions].contains(&Part::Pool);
            let waits = if is_without_pool { "PoolNotReady" } else { "PoolExhausted" };
            let waits =
                if case.order[..deletions].contains(&Part::Cluster) { "AllocationFailed" } else { waits };
            let mut reasons = ["Allocated", "Allocated", waits];
            reasons.sort_unstable();
            case.show(&reasons).await;
        }
    }
    join_all(cases.iter().map(Case::gone)).await;
    for plural in ["allocations", "endpoints", "prefixes", "pools", "subnets"] {
        assert_eq!(of_realm(&scene, plural).await, Vec::<Value>::new(), "{plural}");
    }
}

/// Allocations by their ids.
fn ids(held: &[Allocation]) -> Vec<u64> {
    held.iter().map(|one| one.id).collect()
}

/// Waits until an address has come back with the values of the former one.
async fn came_back(scene: &Scene, former: &Value) {
    let name = former["metadata"]["name"].as_str().unwrap();
    let back = until(&format!("{name} is back"), async || match scene.get("ipaddresses", name).await {
        Some(back) if back["metadata"]["uid"] != former["metadata"]["uid"] => Ok(back),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(back["spec"], former["spec"]);
    for field in ["ownerReferences", "finalizers", "labels"] {
        assert_eq!(back["metadata"][field], former["metadata"][field], "{field}");
    }
    // A consumer that waits on the claim never saw it without the address.
    let claim = scene.get("ipaddressclaims", name).await.unwrap();
    assert_eq!((ready(&claim).0.as_str(), &claim["status"]["addressRef"]["name"]), ("True", &json!(name)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_8_a_deleted_address_comes_back_with_the_same_values() {
    let scene = Scene::start(1).await;
    let spec = json!({"addresses": ["10.0.0.10-10.0.0.20"], "prefix": 24, "gateway": "10.0.0.1"});
    scene.pool("web", spec).await;
    scene
        .object("prefixpools", "blocks", json!({"spec": {"prefixes": ["fd00::/62"], "gateway": "fd00::1"}}))
        .await;
    scene.object("clusters", "prod", json!({"spec": {}})).await;
    let cluster = json!({"spec": {"clusterName": "prod"}});
    scene.claim_with("m-0", ("IPPool", "web"), cluster.clone()).await;
    scene.claim_with("b-0", ("PrefixPool", "blocks"), cluster).await;
    assert_eq!(scene.fulfilled("m-0").await, "10.0.0.10/24");
    assert_eq!(scene.fulfilled("b-0").await, "fd00::/64");
    let held = ids(&scene.held().await);
    let address = async |name: &str| scene.get("ipaddresses", name).await.unwrap();
    for name in ["m-0", "b-0"] {
        let former = address(name).await;
        scene.delete("ipaddresses", name).await;
        came_back(&scene, &former).await;
    }

    // A consumer may hold the object. It stays as long as that.
    let hold = async |name: &str, finalizers: Value| {
        scene
            .management
            .patch(&scene.path("ipaddresses", name), json!({"metadata": {"finalizers": finalizers}}))
            .await
    };
    let former = address("m-0").await;
    hold("m-0", json!(["ipam.ipamd.internal/release", "infra.example/machine"])).await.unwrap();
    scene.delete("ipaddresses", "m-0").await;
    scene.settle().await;
    assert_eq!(address("m-0").await["metadata"]["uid"], former["metadata"]["uid"]);
    hold("m-0", json!(null)).await.unwrap();
    came_back(&scene, &former).await;

    // The pool has another gateway meanwhile. Only new claims get it.
    for (plural, pool, name, gateway) in
        [("ippools", "web", "m-0", "10.0.0.254"), ("prefixpools", "blocks", "b-0", "fd00::2")]
    {
        scene.change(plural, pool, json!({"gateway": gateway})).await;
        scene.shows(plural, pool, "/observedGeneration", json!(2)).await;
        let former = address(name).await;
        scene.delete("ipaddresses", name).await;
        came_back(&scene, &former).await;
    }
    scene.claim("m-1", "web").await;
    scene.fulfilled("m-1").await;
    assert_eq!(address("m-1").await["spec"]["gateway"], "10.0.0.254");

    // Finalizers are removed by force, one after the other and while the claim is paused.
    let former = address("m-0").await;
    hold("m-0", json!(null)).await.unwrap();
    scene.delete("ipaddresses", "m-0").await;
    came_back(&scene, &former).await;
    let paused = "cluster.x-k8s.io/paused";
    scene.annotate("ipaddressclaims", "m-0", paused, Some("")).await;
    scene.settle().await;
    let former = address("m-0").await;
    scene.delete("ipaddresses", "m-0").await;
    scene.settle().await;
    let kept = address("m-0").await;
    assert_eq!(kept["metadata"]["uid"], former["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_string());
    hold("m-0", json!(null)).await.unwrap();
    scene.gone("ipaddresses", "m-0").await;
    scene.settle().await;
    assert_eq!(scene.get("ipaddresses", "m-0").await, None);
    scene.annotate("ipaddressclaims", "m-0", paused, None).await;
    came_back(&scene, &former).await;

    let mut all = ids(&scene.held().await);
    all.retain(|id| held.contains(id));
    assert_eq!(all, held, "nothing was allocated anew");
}
