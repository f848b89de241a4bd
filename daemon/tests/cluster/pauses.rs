//! Members that are paused for longer than a lease, with a holder that renews and a waiting claim. Log time
//! stands still without a quorum, and a pause adds one tick to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::request::{Allocated, Renewed};
use ipam_api::time::Timestamp;
use ipam_api::token::Token;
use serde_json::{Value, json};

use crate::cluster::clocks::who_leads;
use crate::support::ask::{get, put};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG, until};

/// No grace: each rule is tested without the help of the other.
const SETTINGS: &str = "heartbeat_ms = 100\nelection_min_ms = 300\nelection_max_ms = 500\nlease_grace_ms = 0";
/// Long enough for many renewals on a busy machine.
const TTL_MS: u64 = 15_000;
/// Life of a token. The test waits for nearly two of them.
const TOKEN_TTL_MS: u64 = 12_000;
/// Time that a renewal waits for its answer.
const ATTEMPT: Duration = Duration::from_secs(1);
/// Failed renewals in a row that take longer than the lease lasts.
const FAILURES: usize = 20;
const RENEW: &str = "/v1/endpoints/host/default/default/holder/renew";

/// Responses to the holder's renewals.
#[derive(Default)]
struct Renewals {
    renewed: AtomicUsize,
    failed: AtomicUsize,
    gone: AtomicUsize,
}

impl Renewals {
    /// Renews without end.
    async fn go_on(self: Arc<Self>, client: Client) {
        loop {
            let call = Call::post(RENEW).repeatable().within(ATTEMPT);
            let count = match client.call::<Renewed>(call).await {
                Ok(_) => &self.renewed,
                Err(problem) if problem.code == Code::NotFound => &self.gone,
                Err(_) => &self.failed,
            };
            count.fetch_add(1, Relaxed);
        }
    }

    /// Waits for this many more of one kind.
    async fn more(&self, what: &str, count: &AtomicUsize, more: usize) {
        let before = count.load(Relaxed);
        until(what, async || match count.load(Relaxed) - before {
            enough if enough >= more => Ok(()),
            few => Err(format!("{few} of {more}")),
        })
        .await;
    }

    async fn fail_for_longer_than_the_lease(&self) {
        self.more("renewals fail", &self.failed, FAILURES).await;
    }

    async fn succeed_again(&self) {
        self.more("renewals succeed", &self.renewed, FAILURES).await;
    }
}

/// A cluster with one address, its holder, and a claim that waits for it.
struct Scene {
    cluster: Cluster,
    renewals: Arc<Renewals>,
    allocation: u64,
}

impl Scene {
    async fn new(members: usize) -> Self {
        let cluster = Cluster::of_with(members, SETTINGS).all_up().await;
        let client = cluster.ask();
        put(&client, "subnets", json!({"name": "lab", "cidr": "10.30.0.0/24"})).await;
        let pool = json!({"name": "lab", "subnet": "lab", "ranges": ["10.30.0.5"], "cooling_ms": 0});
        put(&client, "pools", pool).await;
        let interfaces = json!([{"name": "eth0", "ipv4_pools": ["lab"]}]);
        let holder = json!({"endpoint": {"kind": "host", "name": "holder"}, "ttl_ms": TTL_MS, "interfaces": interfaces});
        let call = Call::post("/v1/allocations").json(&holder).unwrap().repeatable().within(LONG);
        let given: Allocated = client.call(call).await.unwrap();
        let renewals = Arc::<Renewals>::default();
        tokio::spawn(Arc::clone(&renewals).go_on(cluster.ask()));
        let claim =
            json!({"endpoint": {"kind": "claim", "name": "next"}, "wait": true, "interfaces": interfaces});
        let waits = ask(cluster.members[0].client, "POST", "/v1/allocations", &[], &claim).await;
        assert_eq!(waits.status, 202, "{waits:?}");
        renewals.succeed_again().await;
        Self { cluster, renewals, allocation: given.interfaces[0].addresses[0].allocation }
    }

    /// The holder has never lost its address.
    async fn ends(self) {
        assert_eq!(self.renewals.gone.load(Relaxed), 0, "the lease of a live holder has ended");
        let client = self.cluster.ask();
        let held: Value = get(&client, "/v1/addresses/10.30.0.5").await.unwrap();
        assert_eq!(held["allocation"]["id"], self.allocation, "{held}");
        let claim: Value = get(&client, "/v1/endpoints/claim/default/default/next").await.unwrap();
        assert_eq!(claim["status"]["conditions"][0]["status"], "False", "{claim}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_loses_its_majority_for_longer_than_a_lease_ends_none() {
    let scene = Scene::new(3).await;
    let leader = scene.cluster.leader().await;
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    others.iter().for_each(|at| scene.cluster.members[*at].pause());
    scene.renewals.fail_for_longer_than_the_lease().await;
    others.iter().for_each(|at| scene.cluster.members[*at].resume());
    scene.renewals.succeed_again().await;
    scene.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_stopped_for_longer_than_a_lease_ends_none() {
    let scene = Scene::new(3).await;
    let leader = &scene.cluster.members[scene.cluster.leader().await];
    leader.pause();
    let end_ms = Timestamp::now().0 + TTL_MS;
    until("the lease would have ended without renewals", async || match Timestamp::now().0 {
        now_ms if now_ms > end_ms => Ok(()),
        now_ms => Err(format!("{} ms are left", end_ms - now_ms)),
    })
    .await;
    leader.resume();
    scene.renewals.succeed_again().await;
    scene.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_member_that_is_stopped_for_longer_than_a_lease_ends_none() {
    let scene = Scene::new(1).await;
    scene.cluster.members[0].pause();
    scene.renewals.fail_for_longer_than_the_lease().await;
    scene.cluster.members[0].resume();
    scene.renewals.succeed_again().await;
    scene.ends().await;
}

/// Reads with a token at one member, from what that member has; true if the token is accepted.
async fn accepts(cluster: &Cluster, at: usize, token: &str) -> Result<bool, String> {
    let headers = [("authorization", token)];
    let read =
        ask(cluster.members[at].client, "GET", "/v1/networks?consistency=stale", &headers, &Value::Null);
    let read = read.await;
    match read.status {
        200 => Ok(true),
        401 => Ok(false),
        _ => Err(format!("{read:?}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_expires_at_all_members_by_log_time_and_at_none_without_a_quorum() {
    let cluster = Cluster::of_with(3, &format!("{SETTINGS}\n[access]\nrequire_tokens = true")).all_up().await;
    let root = Client::over_socket(&cluster.members[0].socket()).unwrap();
    let leader = who_leads(&cluster, &root).await;
    let body = json!({"name": "short", "role": "viewer", "ttl_ms": TOKEN_TTL_MS});
    let call = Call::post("/v1/tokens").json(&body).unwrap().within(LONG);
    let token: Token = root.call(call).await.unwrap();
    let token = format!("Bearer {}", token.secret.unwrap());
    for at in 0..3 {
        until("the token is known", async || match accepts(&cluster, at, &token).await? {
            true => Ok(()),
            false => Err("it is refused".to_owned()),
        })
        .await;
    }
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    others.iter().for_each(|at| cluster.members[*at].pause());
    let end_ms = Timestamp::now().0 + TOKEN_TTL_MS;
    until("the token has expired by the wall clock", async || {
        assert!(accepts(&cluster, leader, &token).await?, "log time stands still");
        if Timestamp::now().0 > end_ms { Ok(()) } else { Err("it has time left".to_owned()) }
    })
    .await;
    others.iter().for_each(|at| cluster.members[*at].resume());
    // Nothing is written: the leader advances log time by itself.
    for at in 0..3 {
        until("the token expires", async || match accepts(&cluster, at, &token).await? {
            true => Err("it is accepted".to_owned()),
            false => Ok(()),
        })
        .await;
    }
}
