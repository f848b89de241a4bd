//! Attacks on the provider: a hostile or slow API server, odd objects, and rivals.

use std::collections::VecDeque;
use std::time::Duration;

use ipam_api::client::{Call, Client};
use ipam_api::resource::Allocation;
use serde_json::{Value, json};
use test_apiserver::{ApiServer, Fault, Hostility, Request, Stage};

use super::invariants::{consistent, distinct};
use super::management::{Management, unique};
use super::process::Provider;
use super::scene::{Scene, claim, ready};
use crate::cluster::access::{guarded, make, root};
use crate::support::ask::{allocations, subnet_with_pool};
use crate::support::random::Random;
use crate::support::{Cluster, LONG, until};

/// Scene with claims that come and go, and claims whose allocations must stay.
struct Attacked {
    scene: Scene,
    next: usize,
    old: VecDeque<String>,
    new: Vec<String>,
    kept: Vec<Allocation>,
}

impl Attacked {
    async fn start() -> Option<Self> {
        let management = Management::start().await;
        if management.own().is_none() {
            println!("faults need the API server of the tests");
            return None;
        }
        let scene = Scene::of(management, 1, "").await;
        scene.pool("web", pool("10.0.0.10-10.0.0.60")).await;
        for number in 0..10 {
            scene.claim(&format!("kept-{number}"), "web").await;
        }
        consistent(&scene).await;
        let kept = scene.held().await;
        Some(Self { scene, next: 0, old: VecDeque::new(), new: Vec::new(), kept })
    }

    fn api(&self) -> &ApiServer {
        self.scene.management.own().unwrap()
    }

    /// Creates two claims and deletes an old one, past all faults.
    fn churn(&mut self) {
        let management = &self.scene.management;
        let collection = management.collection(&management.namespace, "ipaddressclaims");
        for _ in 0..2 {
            let name = format!("m-{}", self.next);
            let mut object = claim("IPPool", "web");
            object["metadata"]["name"] = name.as_str().into();
            self.api().put(&collection, object);
            self.new.push(name);
            self.next += 1;
        }
        if let Some(gone) = self.old.pop_front() {
            let path = self.scene.path("ipaddressclaims", &gone);
            assert!(self.api().change(&path, |object| {
                object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }));
        }
    }

    /// Ends all faults. Afterwards all claims have what they should have, and some of them had it always.
    async fn heal(&mut self, what: &str) {
        for fault in [Fault::Heal, Fault::Thaw, Fault::Fresh, Fault::Compact] {
            self.api().fault(fault);
        }
        let begun = std::time::Instant::now();
        let all = consistent(&self.scene).await;
        println!("{what}: {} claims agree after {} ms", all.len(), begun.elapsed().as_millis());
        let held = self.scene.held().await;
        assert!(self.kept.iter().all(|one| held.contains(one)), "{what}: {:?} {held:?}", self.kept);
        self.old.extend(self.new.drain(..));
        assert_eq!(all.len(), self.kept.len() + self.old.len(), "{what}");
    }

    /// Waits until the API server has got so many more requests.
    async fn requested(&self, before: usize, count: usize, is_one: impl Fn(&Request) -> bool) {
        until("the API server is asked", async || {
            let requests = self.api().requests();
            let found = requests[before..].iter().filter(|one| is_one(one)).count();
            if found >= count { Ok(()) } else { Err(format!("{:?}", &requests[before..])) }
        })
        .await;
    }

    /// Waits until the provider has noted another error.
    async fn failed(&self, before: u64) {
        until("the provider notes an error", async || {
            let status = self.scene.status().await?;
            if status.failures > before { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }
}

fn pool(addresses: &str) -> Value {
    json!({"addresses": [addresses], "prefix": 24, "addressReuseGracePeriodSeconds": 0})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_refusals_and_lost_watches_delay_claims_and_lose_none() {
    let Some(mut attacked) = Attacked::start().await else { return };
    attacked.churn();
    attacked.heal("nothing").await;
    for (code, retry_after) in [(500, None), (429, Some(1)), (409, None)] {
        let before = attacked.api().requests().len();
        attacked.api().fault(Fault::Fail { code, count: 10, retry_after });
        attacked.churn();
        attacked.requested(before, 10, |_| true).await;
        attacked.heal(&format!("{code}")).await;
    }
    for (verb, plural) in [
        ("patch", "ipaddressclaims"),
        ("get", "ipaddressclaims"),
        ("create", "ipaddresses"),
        ("get", "ipaddresses"),
        ("delete", "ipaddresses"),
        ("patch", "ipaddresses"),
        ("list", "ipaddressclaims"),
        ("watch", "ipaddressclaims"),
        ("list", "ipaddresses"),
        ("watch", "ipaddresses"),
        ("list", "clusters"),
        ("watch", "ippools"),
    ] {
        let before = attacked.api().requests().len();
        attacked.api().fault(Fault::Forbid { verb, plural });
        if ["list", "watch"].contains(&verb) {
            attacked.api().fault(Fault::Compact);
        }
        attacked.churn();
        attacked.requested(before, 1, |one| one.verb == verb && one.resource == plural).await;
        attacked.heal(&format!("{verb} {plural}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_old_lists_frozen_watches_and_wrong_answers_release_nothing() {
    let Some(mut attacked) = Attacked::start().await else { return };
    attacked.churn();
    attacked.heal("nothing").await;
    let is_watch = |one: &Request| one.verb == "watch" && one.resource == "ipaddressclaims";
    // The watches before the fault are frozen, and those after it.
    for faults in [&[Fault::Freeze][..], &[Fault::Freeze, Fault::DropWatches]] {
        let before = attacked.api().requests().len();
        for fault in faults {
            attacked.api().fault(fault.clone());
        }
        attacked.churn();
        if faults.len() > 1 {
            attacked.requested(before, 1, is_watch).await;
        }
        attacked.heal("frozen watches").await;
    }
    attacked.churn();
    let before = attacked.api().requests().len();
    attacked.api().fault(Fault::DropWatches);
    attacked.churn();
    attacked.requested(before, 1, is_watch).await;
    attacked.heal("dropped watches").await;
    let before = attacked.api().requests().len();
    attacked.api().fault(Fault::Stale);
    attacked.churn();
    attacked.api().fault(Fault::Compact);
    attacked.requested(before, 2, |one| one.verb == "list" && one.resource == "ipaddressclaims").await;
    attacked.heal("old lists").await;
    let before = attacked.api().requests().len();
    attacked.api().fault(Fault::Slow { delay: Duration::from_millis(50) });
    attacked.churn();
    attacked.requested(before, 2, |one| one.verb == "patch" && one.resource == "ipaddressclaims").await;
    attacked.heal("slow answers").await;
    let before = attacked.scene.status().await.unwrap().failures;
    attacked.api().fault(Fault::Unavailable);
    attacked.churn();
    attacked.failed(before).await;
    attacked.heal("no answers").await;
    let gone = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}).to_string();
    let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []});
    for (what, hostility) in [
        ("an empty object", Hostility::Bytes(b"{}".to_vec())),
        ("a page of a proxy", Hostility::Bytes(b"<html>Welcome</html>".to_vec())),
        ("a status", Hostility::Bytes(gone.into_bytes())),
        ("an empty list", Hostility::Bytes(list.to_string().into_bytes())),
        ("no end", Hostility::Endless(vec![b'x'; 1 << 16])),
    ] {
        let before = attacked.scene.status().await.unwrap().failures;
        attacked.api().fault(Fault::Hostile(hostility));
        attacked.churn();
        attacked.api().fault(Fault::DropWatches);
        attacked.failed(before).await;
        attacked.heal(what).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_a_request_that_hangs_delays_no_other_claim_or_pool() {
    let Some(attacked) = Attacked::start().await else { return };
    let (scene, api) = (&attacked.scene, attacked.api());
    let hold = |verb, plural| Fault::Hold { verb, plural, skip: 0, stage: Stage::Before };
    api.fault(hold("patch", "ippools"));
    scene.pool("a-slow", pool("10.0.1.1-10.0.1.9")).await;
    api.held().await;
    scene.pool("b", pool("10.0.2.1-10.0.2.9")).await;
    scene.reason("ippools", "b", "Applied").await;
    for (verb, plural) in
        [("create", "ipaddresses"), ("patch", "ipaddressclaims/status"), ("patch", "ipaddressclaims")]
    {
        let name = |number: u32| format!("{verb}-{}-{number}", plural.replace('/', "-"));
        let before = api.requests().len();
        api.fault(hold(verb, plural));
        scene.claim(&name(0), "b").await;
        // The next request of its kind is not held.
        attacked.requested(before, 1, |one| one.verb == verb && one.resource == plural).await;
        scene.claim(&name(1), "b").await;
        scene.fulfilled(&name(1)).await;
        assert!(scene.address(&name(0)).await.is_err());
    }
    api.fault(Fault::Heal);
    scene.reason("ippools", "a-slow", "Applied").await;
    consistent(scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_objects_with_odd_contents_are_served_or_ignored() {
    let mut management = Management::start().await;
    let long =
        format!("{}-{}", unique("n"), "x".repeat(63)).chars().take(62).chain(['y']).collect::<String>();
    management.add_namespace(&long).await;
    management.namespace = long;
    let scene = Scene::of(management, 1, "").await;
    let dotted = |first: &str| {
        format!("{first}.{}", "d.".repeat(125)).chars().take(252).chain(['z']).collect::<String>()
    };
    let pool_name = dotted("pool");
    scene.pool(&pool_name, pool("10.0.0.10-10.0.0.60")).await;
    scene.reason("ippools", &pool_name, "Applied").await;
    let claim_name = dotted("claim");
    scene.claim(&claim_name, &pool_name).await;
    scene.fulfilled(&claim_name).await;
    let blocks = json!({"prefixes": ["fd00::/60"], "allocationPrefixLength": 64});
    scene.object("prefixpools", "blocks", json!({"metadata": {}, "spec": blocks})).await;
    let prefix_name = dotted("prefix");
    scene.claim_with(&prefix_name, ("PrefixPool", "blocks"), json!({})).await;
    let message = scene.reason("ipaddressclaims", &prefix_name, "AllocationFailed").await;
    assert!(message.contains("has more than 253 characters"), "{message}");

    let labels: Value = (0..2_000).map(|number| (format!("example.com/l{number}"), json!("v"))).collect();
    let metadata = json!({"annotations": {"note": "é".repeat(32 << 10), "other": "🦀"}, "labels": labels});
    scene.claim_with("heavy", ("IPPool", &pool_name), json!({"metadata": metadata})).await;
    scene.fulfilled("heavy").await;

    let wanted = format!("🦀\u{202e}é{}", "9".repeat(100_000));
    let metadata = json!({"annotations": {"ipam.ipamd.internal/address": wanted}});
    scene.claim_with("unicode", ("IPPool", &pool_name), json!({"metadata": metadata})).await;
    let message = scene.reason("ipaddressclaims", "unicode", "AllocationFailed").await;
    assert!(message.contains('🦀') && message.chars().count() < 5_000, "{message}");
    for name in [&claim_name, &prefix_name, "heavy", "unicode"] {
        scene.delete("ipaddressclaims", name).await;
        scene.gone("ipaddressclaims", name).await;
        scene.gone("ipaddresses", name).await;
    }
    assert!(scene.held().await.is_empty());
    let prefixes: Value = scene.ask().call(Call::get("/v1/prefixes").within(LONG)).await.unwrap();
    assert_eq!(prefixes["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_claims_of_one_name_that_follow_each_other_lose_no_address() {
    const TURNS: usize = 40;
    let mut random = Random::new();
    let scene = Scene::start(1).await;
    // What is released wrongly is allocated to the other one at once.
    scene.pool("web", pool("10.0.0.10-10.0.0.11")).await;
    for turn in 0..TURNS {
        let name = ["a", "b"][random.between(0, 2)];
        until("the former claim is gone", async || {
            let made = scene.management.make(
                &scene.management.namespace,
                "ipaddressclaims",
                name,
                claim("IPPool", "web"),
            );
            match made.await {
                Ok(_) => Ok(()),
                // It is still there, and may stay.
                Err((409, why)) => {
                    let present = scene.get("ipaddressclaims", name).await;
                    let is_live = present.is_some_and(|one| one["metadata"]["deletionTimestamp"].is_null());
                    if is_live { Ok(()) } else { Err(why) }
                }
                Err(refusal) => panic!("{refusal:?}"),
            }
        })
        .await;
        if random.between(0, 2) == 0 {
            let address = scene.fulfilled(name).await;
            let held = scene.addresses().await;
            assert_eq!(held.get(name).map(|held| format!("{held}/24")), Some(address), "turn {turn}");
        }
        scene.delete("ipaddressclaims", name).await;
        if random.between(0, 2) == 0 {
            scene.management.strip("ipaddressclaims", name).await;
        }
        distinct(&scene.management).await;
    }
    for name in ["a", "b"] {
        until("the last claim is there", async || {
            let made = scene.management.make(
                &scene.management.namespace,
                "ipaddressclaims",
                name,
                claim("IPPool", "web"),
            );
            made.await.map(drop).map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
    }
    assert_eq!(consistent(&scene).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_an_old_list_releases_nothing_under_a_live_claim() {
    let management = Management::start().await;
    if management.own().is_none() {
        return println!("old lists need the API server of the tests");
    }
    let scene = Scene { cluster: Cluster::up(1).await, management, realm: unique("fleet") };
    let start = || {
        let urls = scene.cluster.urls();
        Provider::start(&urls, &scene.realm, scene.management.access(), None)
    };
    let api = scene.management.own().unwrap();
    let provider = start();
    scene.pool("web", pool("10.0.0.10-10.0.0.60")).await;
    scene.claim("m-0", "web").await;
    consistent(&scene).await;
    let held = scene.held().await;
    drop(provider);
    // The list has a claim in deletion whose object is gone.
    scene.delete("ipaddressclaims", "m-0").await;
    scene.management.strip("ipaddresses", "m-0").await;
    scene.delete("ipaddresses", "m-0").await;
    api.fault(Fault::Stale);
    api.fault(Fault::Freeze);
    // The claim of this name is another one by now.
    scene.management.strip("ipaddressclaims", "m-0").await;
    scene.claim("m-0", "web").await;
    let before = api.requests().len();
    let _provider = start();
    until("the provider has tried to end the former claim", async || {
        let requests = api.requests();
        let count = |verb: &str| {
            let is_one = |one: &&Request| one.verb == verb && one.resource == "ipaddressclaims";
            requests[before..].iter().filter(is_one).count()
        };
        if count("patch") + count("get") > 0 { Ok(()) } else { Err(format!("{:?}", &requests[before..])) }
    })
    .await;
    assert_eq!(scene.held().await, held, "the address is that of a live claim");
    for fault in [Fault::Thaw, Fault::Fresh, Fault::Compact] {
        api.fault(fault);
    }
    consistent(&scene).await;
    assert_eq!(scene.held().await, held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_a_cluster_is_paused_while_its_watch_is_lost_and_nothing_is_released() {
    let Some(attacked) = Attacked::start().await else { return };
    let (scene, api) = (&attacked.scene, attacked.api());
    let cluster = json!({"metadata": {}, "spec": {"paused": false}});
    scene.object("clusters", "prod", cluster).await;
    scene.claim_with("m-0", ("IPPool", "web"), json!({"spec": {"clusterName": "prod"}})).await;
    scene.fulfilled("m-0").await;
    let held = scene.held().await;
    for fault in [
        Fault::Forbid { verb: "watch", plural: "clusters" },
        Fault::Forbid { verb: "list", plural: "clusters" },
        Fault::DropWatches,
    ] {
        api.fault(fault);
    }
    until("the watch is lost", async || {
        let refused = api.requests();
        let last = refused.iter().rev().find(|one| one.resource == "clusters").map(|one| one.verb);
        let tries = refused.iter().filter(|one| one.resource == "clusters" && one.verb == "watch").count();
        if last == Some("watch") && tries > 1 { Ok(()) } else { Err(format!("{last:?}")) }
    })
    .await;
    scene.management.patch(&scene.path("clusters", "prod"), json!({"spec": {"paused": true}})).await.unwrap();
    let before = api.requests().len();
    scene.delete("ipaddressclaims", "m-0").await;
    // The second request shows that the provider has met the pause in the answer to the first one.
    attacked.requested(before, 2, |one| one.verb == "get" && one.resource == "clusters").await;
    let address = scene.get("ipaddresses", "m-0").await.expect("a paused claim keeps its address");
    assert!(address["metadata"]["deletionTimestamp"].is_null(), "{address}");
    assert_eq!(scene.held().await, held);
    api.fault(Fault::Heal);
    scene
        .management
        .patch(&scene.path("clusters", "prod"), json!({"spec": {"paused": false}}))
        .await
        .unwrap();
    scene.gone("ipaddressclaims", "m-0").await;
    consistent(scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_two_providers_of_one_cluster_agree_and_write_nothing_for_settled_claims() {
    const SETTLED: usize = 100;
    const REFUSED: usize = 20;
    /// Other claims that come and go meanwhile. A hot loop writes in the life of each of them.
    const OTHERS: usize = 5;
    let scene = Scene::start(1).await;
    let urls = scene.cluster.urls();
    let _rival = Provider::start(&urls, &scene.realm, scene.management.access(), None);
    scene.pool("web", pool("10.0.0.10-10.0.0.250")).await;
    for number in 0..SETTLED + 20 {
        scene.claim(&format!("m-{number}"), "web").await;
    }
    for number in 0..20 {
        scene.delete("ipaddressclaims", &format!("m-{number}")).await;
        scene.gone("ipaddressclaims", &format!("m-{number}")).await;
    }
    assert_eq!(consistent(&scene).await.len(), SETTLED);
    for number in 0..REFUSED {
        let metadata = json!({"annotations": {"ipam.ipamd.internal/address": "10.99.0.1"}});
        scene.claim_with(&format!("no-{number}"), ("IPPool", "web"), json!({"metadata": metadata})).await;
    }
    for number in 0..REFUSED {
        scene.reason("ipaddressclaims", &format!("no-{number}"), "AllocationFailed").await;
    }
    scene.shows("ippools", "web", "/ipAddresses/used", json!(SETTLED)).await;
    let Some(api) = scene.management.own() else {
        return println!("requests of a real API server aren't counted");
    };
    let shown = async || {
        let claims = scene.management.all("ipaddressclaims").await;
        [claims, scene.management.all("ipaddresses").await].concat()
    };
    scene.settle().await;
    let (before, former) = (api.requests().len(), shown().await);
    assert_eq!(former.len(), 2 * SETTLED + REFUSED);
    for _ in 0..OTHERS {
        scene.settle().await;
    }
    // Also a write that changes nothing is one.
    let requests = api.requests();
    let is_write = |one: &&Request| ["create", "patch", "update", "delete"].contains(&one.verb);
    let writes = requests[before..].iter().filter(is_write);
    let is_of_others = |one: &&Request| one.verb == "create" || one.path.contains("/other-");
    let (of_others, of_settled): (Vec<&Request>, Vec<&Request>) = writes.partition(is_of_others);
    assert!(of_settled.is_empty(), "{of_settled:?}");
    println!("c5_attack: {} writes for {OTHERS} other claims", of_others.len());
    assert_eq!(shown().await, former);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_attack_a_token_without_rights_changes_nothing_and_says_so() {
    let cluster = guarded(1).await;
    let root: Client = root(&cluster);
    let scene = Scene { cluster, management: Management::start().await, realm: unique("fleet") };
    subnet_with_pool(&root, "mine", "10.5.0.0/24", json!({})).await;
    let start = async |realm: &str, allow_shared: bool| {
        let name = unique("provider");
        let body = json!({"name": name, "role": "operator", "realms": [realm], "allow_shared": allow_shared});
        let file = scene.cluster.dir.path().join(&name);
        std::fs::write(&file, make(&root, body).await.secret.unwrap()).unwrap();
        let urls = scene.cluster.urls();
        Provider::start(&urls, &scene.realm, scene.management.access(), Some(&file))
    };
    let counts = async || {
        let mut counts = Vec::new();
        for plural in ["subnets", "pools", "networks"] {
            let all: Value = root.call(Call::get(format!("/v1/{plural}")).within(LONG)).await.unwrap();
            counts.push(all["items"].as_array().unwrap().len());
        }
        counts
    };
    let before = counts().await;
    scene.pool("web", pool("10.0.0.10-10.0.0.60")).await;
    scene.pool("named", json!({"poolRef": {"name": "mine"}})).await;
    scene.claim("m-web", "web").await;
    scene.claim("m-named", "named").await;

    let other = start("other", false).await;
    let message = scene.reason("ipaddressclaims", "m-named", "AllocationFailed").await;
    assert!(message.contains("realm"), "{message}");
    scene.reason("ippools", "web", "Forbidden").await;
    drop(other);
    assert_eq!(counts().await, before);

    let limited = start(&scene.realm, false).await;
    scene.reason("ippools", "web", "Forbidden").await;
    let message = scene.reason("ipaddressclaims", "m-web", "PoolNotReady").await;
    assert!(message.contains("is refused"), "{message}");
    // An existing pool needs no right to change it.
    scene.reason("ipaddressclaims", "m-named", "Allocated").await;
    drop(limited);
    assert_eq!(counts().await, before);
    let held = allocations(&root).await;
    assert_eq!(held.len(), 1, "{held:?}");

    let other = start("other", false).await;
    scene.delete("ipaddressclaims", "m-named").await;
    gone(&scene.management, "ipaddresses", "m-named").await;
    scene.claim("m-more", "named").await;
    scene.reason("ipaddressclaims", "m-more", "AllocationFailed").await;
    assert!(scene.get("ipaddressclaims", "m-named").await.is_some(), "its address was not released");
    assert_eq!(allocations(&root).await, held);
    drop(other);

    let _right = start(&scene.realm, true).await;
    gone(&scene.management, "ipaddressclaims", "m-named").await;
    scene.reason("ipaddressclaims", "m-web", "Allocated").await;
    scene.reason("ipaddressclaims", "m-more", "Allocated").await;
    let claim = scene.get("ipaddressclaims", "m-web").await.unwrap();
    assert_eq!(ready(&claim).1, "Allocated");
    assert_ne!(counts().await, before);
}

/// Waits until an object is gone, without a question to the members.
async fn gone(management: &Management, plural: &str, name: &str) {
    until(&format!("{plural}/{name} is gone"), async || {
        match management.get(&management.path(plural, name)).await {
            None => Ok(()),
            Some(object) => Err(object.to_string()),
        }
    })
    .await;
}
