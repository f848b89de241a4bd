//! Wrong wall clocks. Rules depend on log time only, which follows monotonic clocks: a leader in another year
//! ends nothing early and keeps nothing too long.

use ipam_api::client::{Call, Client};
use ipam_api::event::EventPage;
use ipam_api::token::Token;
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::support::ask::{get, put};
use crate::support::raw::ask;
use crate::support::{Cluster, LONG, clocks, until};

const GUARDED: &str =
    "heartbeat_ms = 100\nelection_min_ms = 300\nelection_max_ms = 500\n[access]\nrequire_tokens = true";
const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;

/// Three members whose wall clocks are set by files, and an administrator.
async fn scene() -> (Cluster, Client) {
    let mut cluster = Cluster::of_with(3, GUARDED);
    for member in &mut cluster.members {
        let clock = cluster.dir.path().join(format!("{}.clock", member.name));
        clocks::set(&clock, "+0");
        member.clock = Some(clock);
    }
    let cluster = cluster.all_up().await;
    let root = Client::over_socket(&cluster.members[0].socket()).unwrap();
    (cluster, root)
}

/// Index of the leader, as the first member sees it.
pub(crate) async fn who_leads(cluster: &Cluster, root: &Client) -> usize {
    until("a member leads", async || {
        let shown: Value = get(root, "/v1/cluster").await.map_err(|problem| problem.to_string())?;
        let place = cluster.members.iter().position(|member| shown["leader"] == *member.name);
        place.ok_or_else(|| shown.to_string())
    })
    .await
}

fn set(cluster: &Cluster, at: usize, how: &str) {
    clocks::set(cluster.members[at].clock.as_ref().unwrap(), how);
}

async fn token(root: &Client, name: &str, ttl_ms: u64) -> String {
    let body = json!({"name": name, "role": "operator", "ttl_ms": ttl_ms});
    let made: Token = root.call(Call::post("/v1/tokens").json(&body).unwrap().within(LONG)).await.unwrap();
    made.secret.unwrap()
}

fn with(call: Call, secret: &str) -> Call {
    call.header("authorization", &format!("Bearer {secret}")).unwrap().within(LONG)
}

/// A change by the holder of a token: log time advances, and due rows expire.
async fn change(client: &Client, secret: &str, name: &str) -> Result<Value, Problem> {
    let call = Call::put(format!("/v1/networks/{name}")).json(&json!({"name": name})).unwrap();
    client.call(with(call, secret)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_wall_clock_is_a_year_off_jumps_or_runs_ends_nothing_early() {
    let (cluster, root) = scene().await;
    put(&root, "subnets", json!({"name": "lan", "cidr": "10.7.0.0/24"})).await;
    put(&root, "pools", json!({"name": "lan", "subnet": "lan", "cooling_ms": 3_600_000})).await;
    let secret = token(&root, "an-hour", 3_600_000).await;
    let headers = [("authorization", &*format!("Bearer {secret}")), ("idempotency-key", "once")];
    let host = json!({"endpoint": {"kind": "host", "name": "h1"}, "interfaces": [{"name": "eth0"}]});
    let host = {
        let mut host = host;
        host["interfaces"][0]["ipv4_pools"] = json!(["lan"]);
        host
    };
    let leader = who_leads(&cluster, &root).await;
    let given = ask(cluster.members[leader].client, "POST", "/v1/allocations", &headers, &host).await;
    assert_eq!(given.status, 201, "{given:?}");
    let free = Call::delete("/v1/endpoints/host/default/default/h1");
    root.send(free.within(LONG)).await.unwrap();

    let mut newest_ms = 0;
    for (number, how) in ["+365d", "-365d", "+3650d", "+0 x100000", "+365d"].iter().enumerate() {
        let leader = who_leads(&cluster, &root).await;
        set(&cluster, leader, how);
        for member in 0..3 {
            let name = format!("n-{number}-{member}");
            change(&cluster.at(member), &secret, &name)
                .await
                .unwrap_or_else(|problem| panic!("{how}: {problem}"));
        }
        let again = ask(cluster.members[leader].client, "POST", "/v1/allocations", &headers, &host).await;
        assert_eq!((again.status, again.body), (201, given.body.clone()), "{how}: the kept answer");
        let pool: Value = get(&root, "/v1/pools/lan").await.unwrap();
        assert_eq!(pool["status"]["counts"]["cooling"], json!(1), "{how}: {pool}");
        let events: EventPage = get(&root, "/v1/events?reverse=true&limit=1").await.unwrap();
        newest_ms = newest_ms.max(events.items[0].at.0);
    }
    let now_ms = ipam_api::time::Timestamp::now().0;
    assert!(newest_ms > now_ms + YEAR_MS / 2, "the clock was indeed wrong: events say {newest_ms}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_wall_clock_stands_a_year_back_ends_everything_on_time() {
    let (cluster, root) = scene().await;
    // Long enough for the first change on a busy machine.
    let secret = token(&root, "soon", 15_000).await;
    for at in 0..3 {
        set(&cluster, at, "-365d");
    }
    change(&cluster.at(0), &secret, "early").await.unwrap();
    for at in 0..3 {
        let client = cluster.at(at);
        until("the token has ended", async || match change(&client, &secret, "late").await {
            Err(problem) if problem.code == Code::TokenExpired => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}
