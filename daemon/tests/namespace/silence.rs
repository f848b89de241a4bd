//! Nodes that lose power, their servers or their cable: only addresses that are silent on the wire are freed.

use ipam_api::client::Call;
use ipam_api::node_report::NodeAgent;
use ipam_api::reclaim::Reclaimed;
use serde_json::json;

use crate::namespace::lan::{Lan, addresses};
use crate::support::ask::{get, refused};
use crate::support::{LONG, until};

/// Containers of a node.
const CONTAINERS: usize = 50;

/// Rounds of the garbage collection, one each second, in which it would have freed the addresses of a silent
/// node: the grace, three silent rounds, and some more.
const ROUNDS: u64 = 30 + 3 * 10 + 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_power_loses_its_addresses_and_no_other_node_does() {
    let lan = Lan::make(json!({"conflicts": true})).await;
    let mut dying = lan.node("n1", 201).await;
    let mut living = lan.node("n3", 203).await;
    let mut prober = lan.node("n4", 204).await;
    for _ in 0..CONTAINERS {
        assert_eq!(addresses(&dying.add()).len(), 2);
    }
    // Nodes that stay alive have heard them, and not only the one that is cut off.
    lan.heard("n1").await;
    let mut cut_off = lan.node("n2", 202).await;
    // Each of the living nodes hears an address of the other one: the link works.
    for node in [&mut cut_off, &mut living, &mut prober] {
        assert_eq!(addresses(&node.add()).len(), 2);
    }
    for node in ["n2", "n3", "n4"] {
        lan.heard(node).await;
    }
    let begun = lan.rounds().await;
    dying.power_off();
    cut_off.lose_servers();
    until("the addresses of n1 are suspect", async || {
        let report = lan.suspects().await;
        let of_n1 = report.iter().filter(|line| line.node.name.as_str() == "n1").count();
        if of_n1 == 2 * CONTAINERS { Ok(()) } else { Err(format!("{} lines", report.len())) }
    })
    .await;
    let found = lan.fsck("silent-node");
    assert!(found.len() >= 2 * CONTAINERS, "{} findings", found.len());
    until("the addresses of n1 are free", async || match lan.held_on("n1").await.len() {
        0 => Ok(()),
        left => Err(format!("{left} left: {:?}", lan.suspects().await.first())),
    })
    .await;
    // The other silent node has had the same time, and its containers answer.
    lan.rounds_after(begun, ROUNDS).await;
    for node in ["n2", "n3", "n4"] {
        assert_eq!(lan.held_on(node).await.len(), 2, "{node}");
    }
    cut_off.reach_servers(&lan.cluster);
    until("n2 is heard again", async || match lan.suspects().await.len() {
        0 => Ok(()),
        left => Err(format!("{left} suspects")),
    })
    .await;
    assert_eq!(lan.held_on("n2").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pulled_cable_and_routed_containers_keep_their_addresses_until_an_operator_acts() {
    let lan = Lan::make(json!({"conflicts": true})).await;
    let mut routed = lan.node("n1", 201).await;
    let mut prober = lan.node("n2", 202).await;
    let given = addresses(&routed.add_with(json!({"type": "ptp", "ipMasq": false})));
    assert_eq!(given.len(), 2);
    assert_eq!(addresses(&prober.add()).len(), 2);
    for node in ["n1", "n2"] {
        until(&format!("the agent of {node} is heard"), async || {
            let agent: Result<NodeAgent, _> =
                get(&lan.ask(), &format!("/v1/nodes/default/{node}/agent")).await;
            agent.map(drop).map_err(|problem| problem.to_string())
        })
        .await;
    }
    let begun = lan.rounds().await;
    // The prober's cable is pulled: it hears no address, and that proves nothing.
    lan.plug(&prober.host, false);
    routed.power_off();
    let reclaim = async || {
        let held = lan.held_on("n1").await;
        let ids: Vec<u64> = held.iter().map(|one| one.id).collect();
        let body = json!({"reason": "node-gone", "allocations": ids});
        let call = Call::post("/v1/nodes/default/n1/reclaim").json(&body).unwrap().within(LONG);
        lan.ask().call::<Reclaimed>(call).await
    };
    refused(reclaim().await, ipam_api::Code::InUse);
    lan.rounds_after(begun, ROUNDS).await;
    lan.plug(&prober.host, true);
    lan.rounds_after(begun, ROUNDS + 12).await;
    assert_eq!(lan.held_on("n1").await.len(), 2, "nothing proves that routed containers are gone");
    assert_eq!(lan.held_on("n2").await.len(), 2);
    assert_eq!(lan.suspects().await.iter().filter(|line| line.due).count(), 0);
    let reclaimed = reclaim().await.unwrap();
    assert_eq!((reclaimed.addresses.len(), reclaimed.stale), (2, 0));
    assert!(lan.held_on("n1").await.is_empty());
}
