//! A node's token with the most expensive requests that it allows, beside nodes with normal ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ipam_api::client::{Call, Client};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::support::ask::put;
use crate::support::raw::{request, send};
use crate::support::{Cluster, LONG, until};

/// Pools of the cluster, as many as one transaction makes.
const POOLS: usize = 1000;
/// ADDs of an honest node.
const ADDS: u64 = 100;

fn with(call: Call, secret: &str) -> Call {
    call.header("authorization", &format!("Bearer {secret}")).unwrap().within(LONG)
}

async fn node_token(root: &Client, node: &str) -> String {
    let body = json!({"name": node, "role": "node", "node": {"name": node}});
    let token: Value = root.call(Call::post("/v1/tokens").json(&body).unwrap().within(LONG)).await.unwrap();
    token["secret"].as_str().unwrap().to_owned()
}

fn add(number: u64) -> Value {
    let container = format!("c{number}");
    json!({
        "endpoint": {"kind": "pod", "namespace": "web", "name": container},
        "node": "honest",
        "attachment": {"node": "honest", "config": "net", "container_id": container, "interface": "eth0"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["honest"]}],
        "started": {"boot_id": "boot", "at_us": 1 + number},
    })
}

/// Allocation with many candidate pools: 64 patterns, each with leading wildcards, on 16 interfaces.
fn wide(name: &str, patterns: &[String], interfaces: usize) -> Value {
    let interface = |number: usize| {
        let mut patterns = patterns.to_vec();
        let from = number % patterns.len();
        patterns.rotate_left(from);
        json!({"name": format!("net{number}"), "ipv4_pools": patterns})
    };
    json!({
        "endpoint": {"kind": "machine", "name": name},
        "node": "evil",
        "interfaces": (0..interfaces).map(interface).collect::<Vec<_>>(),
    })
}

/// The requests of the attack, one after the other, over and over.
fn attack(number: u64) -> Call {
    let stars: Vec<String> = (0..64).map(|part| format!("*[0-9]*[0-9]*{}*", part % 10)).collect();
    let all = ["many-*".to_owned()];
    let step = |name: String, patterns: &[String], interfaces| json!({"method": "POST", "path": "/v1/allocations", "body": wide(&name, patterns, interfaces)});
    match number % 4 {
        0 => Call::post("/v1/allocations").json(&wide("evil", &stars, 16)).unwrap(),
        1 => {
            let steps: Vec<Value> = (0..10).map(|part| step(format!("evil-{part}"), &stars, 16)).collect();
            Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap()
        }
        2 => {
            // As many cheap steps as the budget holds, and then some.
            let steps: Vec<Value> = (0..500).map(|part| step(format!("evil-{part}"), &all, 1)).collect();
            Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap()
        }
        _ => Call::post("/v1/allocations/explain").json(&wide("evil", &stars, 16)).unwrap(),
    }
}

/// Number of leader changes that this member has seen.
async fn leader_changes(cluster: &Cluster, at: usize) -> u64 {
    let metrics = cluster.at(at).send(Call::get("/metrics").within(LONG)).await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    let found = metrics.lines().find_map(|line| line.split_once("raft_leader_changes_total "));
    found.unwrap_or_else(|| panic!("{metrics}")).1.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn red_team_the_most_expensive_requests_of_a_node_hold_up_no_other() {
    let cluster = Cluster::calm(3).await;
    let root = cluster.ask();
    put(&root, "subnets", json!({"name": "lan", "cidr": "10.0.0.0/8"})).await;
    put(&root, "pools", json!({"name": "honest", "subnet": "lan", "ranges": ["10.200.0.0-10.200.255.255"]}))
        .await;
    let pool = |number: usize| {
        let range = format!("10.{}.{}.1-10.{0}.{1}.4", number >> 8, number & 255);
        let name = format!("many-{number:04}");
        json!({"method": "PUT", "path": format!("/v1/pools/{name}"),
               "body": {"name": name, "subnet": "lan", "ranges": [range], "default": true}})
    };
    let steps: Vec<Value> = (0..POOLS).map(pool).collect();
    let make = Call::post("/v1/transactions").json(&json!({"steps": steps})).unwrap();
    let make = make.header("idempotency-key", "pools").unwrap().repeatable().slow().within(LONG);
    root.send(make).await.unwrap();
    let (honest, evil) = (node_token(&root, "honest").await, node_token(&root, "evil").await);
    cluster.settled().await;
    let mut before = Vec::new();
    for at in 0..3 {
        before.push(leader_changes(&cluster, at).await);
    }

    let stop = Arc::new(AtomicBool::new(false));
    let (attacks, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let attackers: Vec<_> = (0..3)
        .zip([0, 1, 2])
        .map(|(turn, at)| {
            let (client, evil) = (cluster.at(at), evil.clone());
            let (stop, attacks, refused) = (stop.clone(), attacks.clone(), refused.clone());
            tokio::spawn(async move {
                for turn in turn.. {
                    if stop.load(Relaxed) {
                        return;
                    }
                    match client.send(with(attack(turn), &evil)).await {
                        Ok(_) => {}
                        Err(Problem { code: Code::LimitExceeded, .. }) => {
                            refused.fetch_add(1, Relaxed);
                        }
                        // An attacker's own requests may come too late on a busy machine.
                        Err(Problem {
                            code:
                                Code::PoolExhausted
                                | Code::TooManyRequests
                                | Code::Forbidden
                                | Code::DeadlineExceeded,
                            ..
                        }) => {}
                        Err(problem) => panic!("{problem}"),
                    }
                    attacks.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();

    let client = cluster.ask();
    let mut alive = 0;
    for (number, at) in (0..ADDS).zip([0, 1, 2].into_iter().cycle()) {
        // Not faster than the attack.
        until("there was an attack meanwhile", async || {
            let attacks = attacks.load(Relaxed);
            (attacks > number).then_some(()).ok_or_else(|| format!("{attacks} attacks, {number} ADDs"))
        })
        .await;
        // The attachment and its start identify the request: a repetition gets the same allocation. Each
        // attempt has the longest time limit, since the attack may slow down all members.
        let call = Call::post("/v1/allocations").json(&add(number)).unwrap().repeatable().slow();
        client.send(with(call, &honest)).await.unwrap_or_else(|problem| panic!("ADD {number}: {problem}"));
        let member = &cluster.members[at];
        let answer = send(member.client, &request("GET", "/livez", &[], b"")).await.unwrap();
        alive += u64::from(answer.status == 200);
    }
    stop.store(true, Relaxed);
    for attacker in attackers {
        attacker.await.unwrap();
    }
    assert_eq!(alive, ADDS);
    let (attacks, refused) = (attacks.load(Relaxed), refused.load(Relaxed));
    assert!(attacks > 0 && refused > 0, "{refused} of {attacks} attacks were refused");
    for (at, before) in before.into_iter().enumerate() {
        assert_eq!(leader_changes(&cluster, at).await, before, "elections at {}", cluster.members[at].name);
    }
    cluster.settled().await;
}
