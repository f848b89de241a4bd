//! Reports of a node's agent at real members: readiness, leases that live with heartbeats, orphans.

use futures::future::join_all;
use ipam_api::Code;
use ipam_api::client::{Call, Client};
use ipam_api::cluster::Cluster as Shown;
use ipam_api::node_report::{
    HeartbeatAnswer, Inventory, InventoryDigest, NodeAgent, NodeAttachment, OrphansReleased,
};
use ipam_api::request::Allocated;
use ipam_api::resource::Page;
use serde_json::{Value, json};

use crate::cluster::access::{add, guarded, node_secret, root, with};
use crate::support::ask::{get, known, make_pools, put, refused};
use crate::support::{Cluster, LONG, until};

pub(crate) fn heartbeat(node: &str, number: u64, ready: bool, inventory: &InventoryDigest) -> Call {
    let body = json!({
        "boot_id": format!("boot-{number}"), "boot_number": number, "ready": ready,
        "problem": if ready { Value::Null } else { json!("socket-unavailable") },
        "agent_version": "0.1.0", "inventory": inventory,
    });
    Call::post(format!("/v1/nodes/default/{node}/heartbeat")).json(&body).unwrap().within(LONG)
}

async fn hear(client: &Client, node: &str, number: u64) -> HeartbeatAnswer {
    let call = heartbeat(node, number, true, &Inventory::default().digest());
    client.call(call.repeatable()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_lives_while_its_node_is_heard_and_ends_after_it_falls_silent() {
    let cluster = Cluster::up(3).await;
    let client = cluster.ask();
    put(&client, "subnets", json!({"name": "lab", "cidr": "10.30.0.0/24"})).await;
    put(&client, "pools", json!({"name": "lab", "subnet": "lab", "cooling_ms": 600_000})).await;
    let lease = async |name: &str, node: Value| -> Allocated {
        // Long enough for heartbeats of a busy machine.
        let body = json!({
            "endpoint": {"kind": "host", "name": name}, "node": node, "ttl_ms": 10_000,
            "interfaces": [{"name": "eth0", "ipv4_pools": ["lab"]}],
        });
        let call = Call::post("/v1/allocations").json(&body).unwrap();
        client.call(call.repeatable().within(LONG)).await.unwrap()
    };
    let given = lease("on-n1", json!("n1")).await;
    lease("nowhere", Value::Null).await;
    let state = async |address: &str| known(&client, address.parse().unwrap()).await.state;
    until("a lease without heartbeats ends", async || {
        // At any member: a follower forwards it.
        hear(&cluster.at(2), "n1", 1).await;
        match state("10.30.0.2").await.as_str() {
            "cooling" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    assert_eq!(state("10.30.0.1").await, "allocated");
    let id = given.interfaces[0].addresses[0].allocation;
    let shown: Value = get(&client, &format!("/v1/allocations/{id}")).await.unwrap();
    let first = given.interfaces[0].addresses[0].lease.clone().unwrap();
    let ends_at = serde_json::from_value(shown["lease"]["ends_at"].clone()).unwrap();
    assert!(first.ends_at < ends_at, "the end is that of the newest heartbeat: {shown}");
    until("the lease ends after the last heartbeat", async || match state("10.30.0.1").await.as_str() {
        "cooling" => Ok(()),
        other => Err(other.to_owned()),
    })
    .await;
}

/// Nodes that are heard at once.
const NODES: u64 = 100;
/// Log entries of their heartbeats. On a busy machine these arrive in several ticks, and a heartbeat that
/// wakes early may be in an entry of its own. Without ticks each heartbeat has an entry of its own.
const ENTRIES_MAX: u64 = NODES / 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_of_one_tick_share_a_log_entry() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.ask());
    let mut calls = Vec::new();
    for node in (0..NODES).map(|number| format!("n{number}")) {
        // Each agent has a token of its own: the commands of one principal have a bounded share of an entry.
        let secret = node_secret(&root, &node, &node).await;
        calls.push(with(heartbeat(&node, 1, true, &Inventory::default().digest()).repeatable(), &secret));
    }
    let applied = async || root.call::<Shown>(Call::get("/v1/cluster").within(LONG)).await.unwrap().applied;
    let before = applied().await;
    for answer in join_all(calls.into_iter().map(|call| client.call::<HeartbeatAnswer>(call))).await {
        answer.unwrap();
    }
    let entries = applied().await - before;
    assert!((1..=ENTRIES_MAX).contains(&entries), "{entries} entries for {NODES} heartbeats");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reports_its_boots_and_its_readiness() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    let none: Result<Value, _> = get(&client, "/v1/nodes/default/n1/agent").await;
    refused(none, Code::NotFound);
    let first = hear(&client, "n1", 3).await;
    assert_eq!((first.boot_number, first.boot_id.as_str()), (3, "boot-3"));
    assert!(first.inventory_matches);
    let late = hear(&client, "n1", 2).await;
    assert_eq!((late.boot_number, late.boot_id.as_str()), (3, "boot-3"), "it changed nothing");
    let call = heartbeat("n1", 3, false, &Inventory::default().digest());
    let _: HeartbeatAnswer = client.call(call.repeatable()).await.unwrap();
    let agent: NodeAgent = get(&client, "/v1/nodes/default/n1/agent").await.unwrap();
    assert_eq!((agent.ready, agent.problem.unwrap().as_str()), (false, "socket-unavailable"));
    assert!(agent.inventory_matches);
    put(&client, "nodes/default", json!({"name": "n1"})).await;
    let node: Value = get(&client, "/v1/nodes/default/n1").await.unwrap();
    assert_eq!(node["status"]["agent"]["ready"], json!(false));
    let unready: Value = get(&client, "/v1/nodes?ready=false").await.unwrap();
    assert_eq!(unready["items"].as_array().unwrap().len(), 1);
    let events: Value = get(&client, "/v1/events?kind=node").await.unwrap();
    let events = events["items"].as_array().unwrap();
    let changes = events.iter().filter(|one| one["type"] == "node.condition");
    let reasons: Vec<&str> = changes.map(|one| one["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["ready", "socket-unavailable"], "one for each change");
    client.send(Call::delete("/v1/nodes/default/n1").within(LONG)).await.unwrap();
    let gone: Result<Value, _> = get(&client, "/v1/nodes/default/n1/agent").await;
    refused(gone, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orphan_is_released_once_by_its_own_node_and_a_stale_id_leaves_it_alone() {
    let cluster = guarded(1).await;
    let (root, client) = (root(&cluster), cluster.members[0].ask());
    make_pools(&root).await;
    let (n1, n2) = (node_secret(&root, "n1", "n1").await, node_secret(&root, "n2", "n2").await);
    for container in ["c1", "c2"] {
        let call = Call::post("/v1/allocations").json(&add("n1", container)).unwrap();
        let _: Allocated = client.call(with(call, &n1)).await.unwrap();
    }
    let path = "/v1/nodes/default/n1/attachments";
    let page: Page<NodeAttachment> =
        client.call(with(Call::get(format!("{path}?limit=1")), &n1)).await.unwrap();
    let next = page.next.unwrap();
    let rest: Page<NodeAttachment> =
        client.call(with(Call::get(format!("{path}?limit=1&cursor={next}")), &n1)).await.unwrap();
    let all: Vec<NodeAttachment> = page.items.into_iter().chain(rest.items).collect();
    assert_eq!((all.len(), rest.next), (2, None));
    let theirs: Result<Value, _> = client.call(with(Call::get(path), &n2)).await;
    refused(theirs, Code::ForeignNode);

    let agent = async || {
        let agent: NodeAgent = get(&root, "/v1/nodes/default/n1/agent").await.unwrap();
        (agent.reported_attachments, agent.attachments, agent.inventory_matches)
    };
    let call = heartbeat("n1", 1, true, &Inventory::default().digest());
    let heard: HeartbeatAnswer = client.call(with(call, &n1)).await.unwrap();
    assert!(!heard.inventory_matches, "{heard:?}");
    assert_eq!(agent().await, (0, 2, false), "the journal lacks both");
    let mut inventory = Inventory::default();
    for one in &all {
        inventory.add(&one.attachment, one.allocations.iter().copied());
    }
    let call = heartbeat("n1", 1, true, &inventory.digest());
    let heard: HeartbeatAnswer = client.call(with(call, &n1)).await.unwrap();
    assert!(heard.inventory_matches, "{heard:?}");
    assert_eq!(agent().await, (2, 2, true));
    let call = heartbeat("n1", 1, true, &inventory.digest());
    let foreign: Result<Value, _> = client.call(with(call, &n2)).await;
    refused(foreign, Code::ForeignNode);

    let orphans = async |secret: &str, ids: &[u64]| {
        let key = &all[0].attachment;
        let orphan = json!({
            "config": key.config, "container_id": key.container_id, "interface": key.interface,
            "allocations": ids, "evidence": "netns-gone",
        });
        let call = Call::post("/v1/nodes/default/n1/orphans").json(&json!({"orphans": [orphan]})).unwrap();
        client.call::<OrphansReleased>(with(call, secret)).await
    };
    let ids = all[0].allocations.clone();
    refused(orphans(&n2, &ids).await, Code::ForeignNode);
    let stale = orphans(&n1, &[ids[0] - 1]).await.unwrap();
    assert_eq!((stale.addresses.len(), stale.stale), (0, 1));
    let released = orphans(&n1, &ids).await.unwrap();
    assert_eq!((released.addresses.len(), released.stale), (1, 0));
    let again = orphans(&n1, &ids).await.unwrap();
    assert_eq!((again.addresses.len(), again.stale), (0, 1));
    let history: Value =
        get(&root, &format!("/v1/addresses/{}/history", released.addresses[0])).await.unwrap();
    assert_eq!(history["events"][0]["reason"], json!("orphaned-netns-gone"));
}
