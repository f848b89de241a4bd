//! Reports of probes and reclaims at real members: bounds of a lying node, and a leader that stops inside.

use ipam_api::Code;
use ipam_api::client::Call;
use ipam_api::limits::{PROBE_RESULTS_MAX, QUARANTINES_PER_NODE_MAX};
use ipam_api::node_report::AgentReport;
use ipam_api::probe::{ProbesAnswer, Quarantine};
use ipam_api::reclaim::{Reclaimed, Tasks};
use ipam_api::request::Allocated;
use ipam_api::resource::Page;
use serde_json::{Value, json};

use crate::cluster::access::{add, guarded, node_secret, root, with};
use crate::support::ask::{allocations, get, known, make_pools, put, refused};
use crate::support::{Cluster, LONG, until};

fn probes(node: &str, body: &Value) -> Call {
    Call::post(format!("/v1/nodes/default/{node}/probes")).json(body).unwrap().within(LONG)
}

/// A result of a foreign host with one address.
fn answered(address: &str) -> Value {
    json!({"address": address, "macs": ["02:00:00:00:99:02"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lying_node_cannot_quarantine_a_pool() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.members[0].ask());
    let subnet = json!({"name": "lan", "cidr": "10.40.0.0/24", "probing": {"conflicts": true}});
    put(&root, "subnets", subnet).await;
    put(&root, "pools", json!({"name": "lan", "subnet": "lan"})).await;
    let (liar, honest) = (node_secret(&root, "n1", "n1").await, node_secret(&root, "n2", "n2").await);
    for (node, secret) in [("n1", &liar), ("n2", &honest)] {
        let body = json!({
            "boot_id": "b", "boot_number": 1, "ready": true, "agent_version": "0.1.0",
            "inventory": {"attachments": 0, "digest": "0000000000000000"},
            "links": [{"cidr": "10.40.0.0/24"}],
        });
        let call = Call::post(format!("/v1/nodes/default/{node}/heartbeat")).json(&body).unwrap();
        let heard: Value = client.call(with(call, secret)).await.unwrap();
        assert_eq!(heard["has_probes"], json!(true));
    }
    // Neither node has a resource.
    let page: Page<AgentReport> = get(&root, "/v1/agents?ready=true&sort=-node").await.unwrap();
    let nodes: Vec<&str> = page.items.iter().map(|of| of.node.as_str()).collect();
    assert_eq!(nodes, ["n2", "n1"]);
    let lies: Vec<Value> = (1..=254).map(|last| answered(&format!("10.40.0.{last}"))).collect();
    let call = probes("n1", &json!({"results": lies}));
    let answer: ProbesAnswer = client.call(with(call, &liar)).await.unwrap();
    assert_eq!(answer.recorded, QUARANTINES_PER_NODE_MAX as u64);
    assert_eq!(answer.refused, 254 - QUARANTINES_PER_NODE_MAX as u64);
    let foreign: Result<Value, _> = client.call(with(probes("n1", &json!({"results": []})), &honest)).await;
    refused(foreign, Code::ForeignNode);
    let many: Vec<Value> = (0..=PROBE_RESULTS_MAX).map(|_| answered("10.40.0.9")).collect();
    let call = with(probes("n1", &json!({"results": many})), &liar);
    refused(client.call::<Value>(call).await, Code::LimitExceeded);

    // The other agent is asked about each of them, finds them silent, and so ends the lies.
    let answer: ProbesAnswer = client.call(with(probes("n2", &json!({"jobs": 256})), &honest)).await.unwrap();
    let silent: Vec<Value> = answer.jobs.iter().map(|job| json!({"address": job.address})).collect();
    assert!(silent.len() >= QUARANTINES_PER_NODE_MAX, "{answer:?}");
    let call = probes("n2", &json!({"results": silent}));
    let _: ProbesAnswer = client.call(with(call, &honest)).await.unwrap();
    let page: Page<Quarantine> = get(&root, "/v1/quarantines").await.unwrap();
    assert_eq!(page.items, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_a_quarantine() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let subnet = json!({"name": "lan", "cidr": "10.41.0.0/24", "probing": {"conflicts": true}});
    put(&client, "subnets", subnet).await;
    put(&client, "pools", json!({"name": "lan", "subnet": "lan"})).await;
    let body = json!({
        "boot_id": "b", "boot_number": 1, "ready": true, "agent_version": "0.1.0",
        "inventory": {"attachments": 0, "digest": "0000000000000000"},
        "links": [{"cidr": "10.41.0.7/24"}, {"cidr": "10.41.0.8/24"}],
    });
    let call = Call::post("/v1/nodes/default/n1/heartbeat").json(&body).unwrap();
    let _: Value = client.call(call.within(LONG)).await.unwrap();
    let results = json!({"results": [answered("10.41.0.5"), answered("10.99.0.5")]});
    let answer: ProbesAnswer = client.call(probes("n1", &results)).await.unwrap();
    assert_eq!((answer.recorded, answer.refused), (1, 0), "the other address is on no link of the node");
    let shown: Quarantine = get(&client, "/v1/quarantines/10.41.0.5").await.unwrap();
    assert_eq!(shown.mac.to_string(), "02:00:00:00:99:02");
    let asked = json!({
        "endpoint": {"kind": "host", "name": "h"},
        "interfaces": [{"name": "eth0", "ipv4_pools": ["lan"], "addresses": ["10.41.0.5"]}],
    });
    let call = Call::post("/v1/allocations").json(&asked).unwrap().within(LONG);
    let detail = refused(client.call::<Value>(call).await, Code::AddressQuarantined);
    assert!(detail.contains("02:00:00:00:99:02"), "{detail}");
    for (query, state) in [("?dry_run=true", "quarantined"), ("", "free")] {
        let call = Call::delete(format!("/v1/quarantines/10.41.0.5{query}")).within(LONG);
        client.send(call).await.unwrap();
        assert_eq!(known(&client, "10.41.0.5".parse().unwrap()).await.state, state);
    }
    let gone: Result<Quarantine, _> = get(&client, "/v1/quarantines/10.41.0.5").await;
    refused(gone, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reclaim_that_a_stopped_leader_still_has_spares_the_newer_owner() {
    let cluster = Cluster::up(3).await;
    make_pools(&cluster.ask()).await;
    let call = Call::post("/v1/allocations").json(&add("n1", "c1")).unwrap().repeatable();
    let first: Allocated = cluster.ask().call(call).await.unwrap();
    let old = &first.interfaces[0].addresses[0];
    let leader = cluster.leader().await;
    let tasks: Tasks = get(&cluster.at(leader), "/v1/tasks").await.unwrap();
    assert!(tasks.leads && tasks.tasks.len() == 5, "{tasks:?}");
    cluster.members[leader].pause();
    let stopped = cluster.at(leader);
    let body = json!({"reason": "node-gone", "allocations": [old.allocation]});
    let call = Call::post("/v1/nodes/default/n1/reclaim").json(&body).unwrap().within(LONG);
    let late = tokio::spawn(async move { stopped.call::<Reclaimed>(call).await });
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    let other = cluster.at(others[0]);
    until("another member leads", async || {
        let tasks: Tasks = get(&other, "/v1/tasks").await.map_err(|problem| problem.to_string())?;
        let third: Tasks =
            get(&cluster.at(others[1]), "/v1/tasks").await.map_err(|problem| problem.to_string())?;
        if tasks.leads || third.leads { Ok(()) } else { Err("no member leads".to_owned()) }
    })
    .await;
    other.send(Call::delete(format!("/v1/allocations/{}", old.allocation)).within(LONG)).await.unwrap();
    let mut again = add("n1", "c2");
    again["interfaces"][0]["addresses"] = json!([old.address.addr()]);
    let call = Call::post("/v1/allocations").json(&again).unwrap().repeatable().within(LONG);
    let second: Allocated = other.call(call).await.unwrap();
    cluster.members[leader].resume();
    // It was forwarded and came too late, or its outcome is unknown to the caller.
    if let Ok(reclaimed) = late.await.unwrap() {
        assert_eq!((reclaimed.addresses.len(), reclaimed.stale), (0, 1));
    }
    let held = allocations(&cluster.ask()).await;
    let new = second.interfaces[0].addresses[0].allocation;
    assert!(held.iter().any(|one| one.id == new && one.address == old.address), "{held:?}");
}
