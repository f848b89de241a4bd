//! Moves of clusters to another management cluster, as `clusterctl move` makes them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::invariants::{consistent, name};
use super::management::{Management, unique};
use super::scene::{Scene, claim, members, ready, section};
use crate::support::ask::list;
use crate::support::until;

const CLAIMS: usize = 25;
/// Claims on the prefix pool, and on the global pool.
const FURTHER: usize = 3;
/// Kinds in the order of their owners.
const KINDS: [&str; 6] =
    ["clusters", "ippools", "prefixpools", "globalippools", "ipaddressclaims", "ipaddresses"];

/// Cluster that moves, with its pool and claims.
struct Moved {
    cluster: &'static str,
    pool: &'static str,
    addresses: &'static str,
    prefixes: &'static str,
    /// Addresses of the global pool.
    global: &'static str,
    /// True if the claims name their Cluster, so that they are paused with it.
    is_named: bool,
    /// True if the copies have the finalizers of their originals.
    keeps_finalizers: bool,
}

impl Moved {
    /// Names of the claims with the kinds and names of their pools.
    fn claims(&self) -> impl Iterator<Item = (String, &'static str, String)> {
        let of = |what: &'static str, kind: &'static str, pool: String, count: usize| {
            (0..count).map(move |number| (format!("{}-{what}-{number}", self.cluster), kind, pool.clone()))
        };
        of("m", "IPPool", self.pool.to_owned(), CLAIMS)
            .chain(of("b", "PrefixPool", self.blocks(), FURTHER))
            .chain(of("g", "GlobalIPPool", self.shared(), FURTHER))
    }

    /// Name of the prefix pool.
    fn blocks(&self) -> String {
        format!("{}-blocks", self.pool)
    }

    /// Name of the global pool.
    fn shared(&self) -> String {
        format!("{}-shared", self.pool)
    }

    async fn create(&self, scene: &Scene) {
        let own = scene.object("clusters", self.cluster, json!({"metadata": {}, "spec": {}})).await;
        let owner = json!([{
            "apiVersion": own["apiVersion"], "kind": "Cluster", "name": self.cluster,
            "uid": own["metadata"]["uid"],
        }]);
        scene.pool(self.pool, json!({"addresses": [self.addresses], "prefix": 24})).await;
        let blocks = json!({"spec": {"prefixes": [self.prefixes]}});
        scene.object("prefixpools", &self.blocks(), blocks).await;
        let shared = json!({"spec": {"addresses": [self.global], "prefix": 24}});
        scene.object("globalippools", &self.shared(), shared).await;
        for (name, kind, pool) in self.claims() {
            let mut object = claim(kind, &pool);
            object["metadata"]["ownerReferences"] = owner.clone();
            if self.is_named {
                object["spec"]["clusterName"] = self.cluster.into();
            }
            scene.object("ipaddressclaims", &name, object).await;
        }
    }

    /// True for an object of the Cluster.
    fn has(&self, plural: &str, object: &Value) -> bool {
        match plural {
            "clusters" => name(object) == self.cluster,
            "ippools" => name(object) == self.pool,
            "prefixpools" => name(object) == self.blocks(),
            "globalippools" => name(object) == self.shared(),
            _ => name(object).starts_with(&format!("{}-", self.cluster)),
        }
    }

    async fn pause(&self, management: &Management, is_paused: bool) {
        let patch = json!({"spec": {"paused": is_paused}});
        management.patch(&management.path("clusters", self.cluster), patch).await.unwrap();
    }

    async fn objects(&self, management: &Management, plural: &str) -> Vec<Value> {
        let mut all = management.all(plural).await;
        all.retain(|object| self.has(plural, object));
        all
    }

    /// Creates all objects in the target, with the uids of their owners there.
    async fn copy(&self, source: &Management, target: &Management) {
        let mut uids: BTreeMap<String, Value> = BTreeMap::new();
        for plural in KINDS {
            for original in self.objects(source, plural).await {
                let mut copy = original.clone();
                copy.as_object_mut().unwrap().remove("status");
                let metadata = copy["metadata"].as_object_mut().unwrap();
                for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
                    metadata.remove(field);
                }
                if !self.keeps_finalizers {
                    metadata.remove("finalizers");
                }
                for owner in
                    metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
                {
                    owner["uid"] = uids[owner["uid"].as_str().unwrap()].clone();
                }
                let made = put(target, plural, copy).await;
                let uid = made["metadata"]["uid"].clone();
                assert_ne!(uid, original["metadata"]["uid"]);
                uids.insert(original["metadata"]["uid"].as_str().unwrap().to_owned(), uid);
            }
        }
    }

    /// Deletes the objects from the source, the dependents first. The provider has time to see that an object
    /// has no finalizer before it is deleted. Global objects and the objects that they own stay.
    async fn delete(&self, source: &Scene) {
        for plural in KINDS.into_iter().rev() {
            let mut objects = self.objects(&source.management, plural).await;
            objects.retain(|object| !is_of_global_pool(plural, object));
            let names: Vec<String> = objects.iter().map(name).collect();
            for name in &names {
                source.management.strip(plural, name).await;
            }
            // What the provider does later, it does after it has seen the changes.
            source.settle().await;
            for name in &names {
                source.delete(plural, name).await;
            }
        }
    }
}

/// True for a global pool, and for an object that it owns.
fn is_of_global_pool(plural: &str, object: &Value) -> bool {
    plural == "globalippools"
        || plural == "ipaddresses" && object["spec"]["poolRef"]["kind"] == "GlobalIPPool"
}

/// Creates an object, or changes the one that the provider has created before.
async fn put(target: &Management, plural: &str, object: Value) -> Value {
    let path = target.path(plural, &name(&object));
    until(&format!("{path} is there"), async || {
        match target.create(&target.collection(&target.namespace, plural), object.clone()).await {
            Ok(made) => return Ok(made),
            Err((409, _)) => {}
            Err(refusal) => panic!("{path}: {refusal:?}"),
        }
        let present = target.get(&path).await.ok_or("it is gone again")?;
        let mut object = object.clone();
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = present["metadata"][field].clone();
        }
        target.send("PUT", &path, Some(object)).await.map_err(|refusal| format!("{refusal:?}"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_11_moved_claims_keep_their_addresses_and_the_source_releases_nothing() {
    let (source, mut target) = (Management::start().await, Management::start().await);
    if source.own().is_none() {
        return println!("c5_11: a move needs two API servers");
    }
    let realm = unique("fleet");
    target.add_namespace(&source.namespace).await;
    target.namespace.clone_from(&source.namespace);
    let sections = [&source, &target].map(|one| section(&realm, one.kubeconfig(), "")).concat();
    let mut scene = Scene { cluster: members(1, &sections).await, management: source, realm };
    let moves = [
        Moved {
            cluster: "prod",
            pool: "web",
            addresses: "10.0.0.10-10.0.0.60",
            prefixes: "fd00::/60",
            global: "10.1.0.10-10.1.0.60",
            is_named: true,
            keeps_finalizers: true,
        },
        Moved {
            cluster: "test",
            pool: "db",
            addresses: "10.0.0.100-10.0.0.150",
            prefixes: "fd00:0:0:10::/60",
            global: "10.1.0.100-10.1.0.150",
            is_named: false,
            keeps_finalizers: false,
        },
    ];
    for moved in &moves {
        moved.create(&scene).await;
    }
    let before = consistent(&scene).await;
    assert_eq!(before.len(), moves.len() * (CLAIMS + 2 * FURTHER));
    let allocations = scene.held().await;
    let prefixes = scene.prefixes().await;
    assert_eq!(prefixes.len(), moves.len() * FURTHER);

    for moved in &moves {
        moved.pause(&scene.management, true).await;
        moved.copy(&scene.management, &target).await;
        moved.delete(&scene).await;
        moved.pause(&target, false).await;
    }
    // The move leaves the addresses of the global pools in the source. The provider removes them, since their
    // claims are gone.
    for plural in KINDS.into_iter().filter(|plural| *plural != "globalippools") {
        until(&format!("the source has no {plural}"), async || {
            let left = scene.management.all(plural).await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
    for moved in &moves {
        let shared = moved.objects(&scene.management, "globalippools").await;
        assert!(shared[0]["metadata"]["deletionTimestamp"].is_null(), "{shared:?}");
    }
    // From here on the scene is that of the target.
    std::mem::swap(&mut scene.management, &mut target);
    assert_eq!(consistent(&scene).await, before);
    // The ids show that nothing was released and allocated again.
    assert_eq!(scene.held().await, allocations);
    assert_eq!(scene.prefixes().await, prefixes);
    for claim in scene.management.all("ipaddressclaims").await {
        assert_eq!(claim["metadata"]["finalizers"], json!(["ipam.ipamd.internal/release"]));
        assert_eq!(ready(&claim).1, "Allocated");
    }

    for moved in &moves {
        // The pools serve further claims.
        for (kind, pool) in
            [("IPPool", moved.pool), ("PrefixPool", &moved.blocks()), ("GlobalIPPool", &moved.shared())]
        {
            let name = format!("{}-more-{}", moved.cluster, kind.to_lowercase());
            scene.claim_with(&name, (kind, pool), json!({})).await;
            scene.fulfilled(&name).await;
        }
        for claim in moved.objects(&scene.management, "ipaddressclaims").await {
            scene.delete("ipaddressclaims", &name(&claim)).await;
        }
    }
    assert!(consistent(&scene).await.is_empty());
    for moved in &moves {
        for (plural, pool) in [("ippools", moved.pool), ("prefixpools", &moved.blocks())] {
            scene.delete(plural, pool).await;
            scene.gone(plural, pool).await;
        }
    }
    // Both management clusters have the global pools. Nothing else is left.
    let pools: Vec<Value> = list(&scene.ask(), "/v1/pools").await;
    assert_eq!(pools.len(), moves.len(), "{pools:?}");
    for moved in &moves {
        let shared = scene.get("globalippools", &moved.shared()).await.unwrap();
        assert!(pools.iter().any(|pool| pool["name"] == shared["status"]["pool"]), "{pools:?}");
    }
}
