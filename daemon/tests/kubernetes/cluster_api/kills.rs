//! Providers that are killed at each step of a claim's life, and leaders that are killed at random times.

use serde_json::{Value, json};
use test_apiserver::{Fault, Stage};

use super::invariants::{consistent, distinct};
use super::management::{Management, unique};
use super::process::Provider;
use super::scene::Scene;
use crate::support::Cluster;
use crate::support::proxy::{Proxy, Step};
use crate::support::random::Random;

/// Point of a claim's life at which the provider is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// Request to the API server.
    Object(&'static str, &'static str, Stage),
    /// Request to the servers.
    Server(&'static str, Step),
}

/// Steps from a new claim to a fulfilled one.
fn fulfilment(request: &'static str) -> Vec<Point> {
    let objects =
        [("patch", "ipaddressclaims"), ("create", "ipaddresses"), ("patch", "ipaddressclaims/status")];
    points(&objects, request)
}

/// Steps from a deleted claim to none.
fn end(release: &'static str) -> Vec<Point> {
    let objects = [("delete", "ipaddresses"), ("patch", "ipaddresses"), ("patch", "ipaddressclaims")];
    points(&objects, release)
}

fn points(objects: &[(&'static str, &'static str)], server: &'static str) -> Vec<Point> {
    let stages = [Stage::Before, Stage::After];
    let of_object =
        objects.iter().flat_map(|(verb, plural)| stages.map(|stage| Point::Object(verb, plural, stage)));
    let of_server = [Step::Sent, Step::Forwarded, Step::Answered].map(|step| Point::Server(server, step));
    of_object.chain(of_server).collect()
}

/// Provider of a scene whose members serve no management cluster themselves.
struct Victim {
    scene: Scene,
    proxy: Proxy,
    provider: Provider,
}

impl Victim {
    async fn start(management: Management) -> Self {
        let cluster = Cluster::up(1).await;
        let scene = Scene { cluster, management, realm: unique("fleet") };
        let proxy = Proxy::to(scene.cluster.members[0].client).await;
        let provider = Self::provider(&scene, &proxy);
        Self { scene, proxy, provider }
    }

    fn provider(scene: &Scene, proxy: &Proxy) -> Provider {
        Provider::start(std::slice::from_ref(&proxy.url), &scene.realm, scene.management.access(), None)
    }

    fn arm(&self, point: Point) {
        match point {
            Point::Object(verb, plural, stage) => {
                self.scene.management.own().unwrap().fault(Fault::Hold { verb, plural, skip: 0, stage });
            }
            Point::Server(head, step) => self.proxy.kill_at_head(self.provider.pid(), head, step),
        }
    }

    /// Kills the provider at the point for which it was armed.
    async fn kill(&mut self, point: Point) {
        if let Point::Object(..) = point {
            let api = self.scene.management.own().unwrap();
            api.held().await;
            self.provider.kill();
            self.provider.killed().await;
            api.none_held().await;
            api.fault(Fault::Heal);
        } else {
            self.provider.killed().await;
        }
    }

    fn restart(&mut self) {
        self.provider = Self::provider(&self.scene, &self.proxy);
    }
}

/// Pool of a kind, and the requests to the servers for its claims.
struct Killed {
    plural: &'static str,
    kind: &'static str,
    spec: Value,
    request: &'static str,
    release: &'static str,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_9_a_provider_that_is_killed_at_any_step_neither_repeats_nor_loses_anything() {
    // Released addresses are allocated again at once, so that one too few is seen.
    let killed = Killed {
        plural: "ippools",
        kind: "IPPool",
        spec: json!({
            "addresses": ["10.0.0.10-10.0.0.99"], "prefix": 24, "addressReuseGracePeriodSeconds": 0,
        }),
        request: "POST /v1/allocations ",
        release: "DELETE /v1/endpoints/",
    };
    killed.at_all_points().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_9_a_provider_that_is_killed_at_any_step_of_a_prefix_neither_repeats_nor_loses_anything() {
    let killed = Killed {
        plural: "prefixpools",
        kind: "PrefixPool",
        spec: json!({"prefixes": ["fd00::/58"]}),
        request: "POST /v1/prefixes ",
        release: "DELETE /v1/prefixes/",
    };
    killed.at_all_points().await;
}

impl Killed {
    async fn at_all_points(self) {
        let management = Management::start().await;
        if management.own().is_none() {
            return println!("c5_9: requests are held by the API server of the tests only");
        }
        let mut victim = Victim::start(management).await;
        victim.scene.serving_pool(self.plural, "web", self.spec.clone()).await;
        for number in 0..3 {
            self.claim(&victim, &format!("before-{number}")).await;
        }
        let before = consistent(&victim.scene).await;
        assert_eq!(before.len(), 3);
        let mut kills = 0;
        for (number, point) in fulfilment(self.request).into_iter().enumerate() {
            for is_deleted in [false, true] {
                let name = format!("m-{number}-{is_deleted}");
                victim.arm(point);
                self.claim(&victim, &name).await;
                victim.kill(point).await;
                kills += 1;
                distinct(&victim.scene.management).await;
                if is_deleted {
                    victim.scene.delete("ipaddressclaims", &name).await;
                }
                victim.restart();
                match is_deleted {
                    false => drop(victim.scene.fulfilled(&name).await),
                    true => victim.scene.gone("ipaddressclaims", &name).await,
                }
                consistent(&victim.scene).await;
            }
        }
        for (number, point) in end(self.release).into_iter().enumerate() {
            let name = format!("d-{number}");
            self.claim(&victim, &name).await;
            victim.scene.fulfilled(&name).await;
            victim.arm(point);
            victim.scene.delete("ipaddressclaims", &name).await;
            victim.kill(point).await;
            kills += 1;
            distinct(&victim.scene.management).await;
            victim.restart();
            victim.scene.gone("ipaddressclaims", &name).await;
            consistent(&victim.scene).await;
        }
        let after = consistent(&victim.scene).await;
        println!("c5_9: {kills} kills, {} claims on {} left", after.len(), self.plural);
        let are_kept = before.iter().all(|(name, address)| after.get(name) == Some(address));
        assert!(are_kept, "{before:?} {after:?}");
    }

    async fn claim(&self, victim: &Victim, name: &str) {
        victim.scene.claim_with(name, (self.kind, "web"), json!({})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_9_leaders_that_are_killed_while_claims_come_and_go_lose_nothing() {
    const ROUNDS: usize = 4;
    let mut random = Random::new();
    let mut scene = Scene::start(3).await;
    let spec =
        json!({"addresses": ["10.0.0.10-10.0.0.60"], "prefix": 24, "addressReuseGracePeriodSeconds": 0});
    scene.pool("web", spec).await;
    let (mut present, mut next) = (Vec::<String>::new(), 0);
    for round in 0..ROUNDS {
        let leader = scene.cluster.leader().await;
        let kill_at = random.between(0, 12);
        for turn in 0..12 {
            if turn == kill_at {
                scene.cluster.members[leader].kill();
            }
            if present.len() > 4 && random.between(0, 3) == 0 {
                let gone = present.remove(random.between(0, present.len()));
                scene.delete("ipaddressclaims", &gone).await;
            } else {
                let name = format!("m-{next}");
                scene.claim(&name, "web").await;
                present.push(name);
                next += 1;
            }
            distinct(&scene.management).await;
        }
        // In every other round the next kill comes before the claims have settled.
        scene.cluster.start(leader);
        scene.cluster.ready_at(leader).await;
        if round % 2 == 1 {
            let addresses = consistent(&scene).await;
            assert_eq!(addresses.keys().cloned().collect::<Vec<_>>(), sorted(&present));
        }
    }
    println!("c5_9: {ROUNDS} leaders killed, {next} claims, {} of them left", present.len());
    for name in &present {
        scene.delete("ipaddressclaims", name).await;
    }
    assert!(consistent(&scene).await.is_empty());
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}
