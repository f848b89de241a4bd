//! CNI behaviours of `reference/cni-and-peers.md` §2 about allocation, by their numbers. The real plugin
//! calls real members. (Those about the plugin itself are in `cni/tests/vectors.rs`, 52 is in
//! `kill/plugins.rs`, and 43 is a benchmark of the machine.)

use std::net::IpAddr;

use ipam_api::client::{Call, Client};
use ipam_api::resource::{Pool, PoolStatus, Resource};
use ipam_api::{Code, Problem};
use serde_json::{Value, json};

use crate::support::Cluster;
use crate::support::ask::{allocations, get, known, put};
use crate::support::plugin::{Outcome, Plugin, network};

/// A member of its own cluster with some subnets, and a pool of the same name for each.
async fn with(subnets: &[(&str, &str)]) -> Cluster {
    let cluster = Cluster::up(1).await;
    for (name, cidr) in subnets {
        let mut subnet = json!({"name": name, "cidr": cidr});
        let first = cidr.parse::<ipnet::IpNet>().unwrap();
        if first.max_prefix_len() - first.prefix_len() > 1 {
            subnet["gateway"] = json!(first.hosts().find(|host| *host != first.network()).unwrap());
        }
        put(&cluster.ask(), "subnets", subnet).await;
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": name})).await;
    }
    cluster
}

fn plugin(cluster: &Cluster, verb: &'static str, container: &str, pools: &[&str]) -> Plugin {
    Plugin::new(verb, container, &network(&cluster.urls(), "node-1", pools))
}

async fn add(cluster: &Cluster, container: &str, pools: &[&str]) -> Outcome {
    plugin(cluster, "ADD", container, pools).run().await
}

async fn del(cluster: &Cluster, container: &str) {
    plugin(cluster, "DEL", container, &[]).run().await.succeeds();
}

#[track_caller]
fn four(outcome: &Outcome) -> String {
    outcome.addresses()[0].to_string()
}

async fn held_in(client: &Client, pool: &str) -> u64 {
    let view: Resource<Pool, PoolStatus> = get(client, &format!("/v1/pools/{pool}")).await.unwrap();
    view.status.counts.allocated
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_24_to_26_a_small_pool_in_order_then_exhausted_then_freed() {
    let cluster = with(&[("p4", "10.1.2.0/29"), ("p6", "2001:db8:1::/64")]).await;
    let both = ["p4", "p6"];
    for at in 2..=6 {
        let outcome = add(&cluster, &format!("c{at}"), &both).await;
        assert_eq!(four(&outcome), format!("10.1.2.{at}"), "never .0, .1 or .7");
        assert_eq!(outcome.addresses().len(), 2);
    }
    let texts = add(&cluster, "c7", &both).await.fails(101);
    assert!(texts.contains("p4"), "{texts}");
    assert_eq!(held_in(&cluster.ask(), "p6").await, 5, "nothing of the other family was kept");
    del(&cluster, "c4").await;
    assert_eq!(four(&add(&cluster, "c7", &both).await), "10.1.2.4", "the freed one, though it still cools");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vector_27_a_freed_address_is_not_the_next_one_given() {
    let cluster = with(&[("p4", "10.1.2.0/29")]).await;
    assert_eq!(four(&add(&cluster, "c1", &["p4"]).await), "10.1.2.2");
    del(&cluster, "c1").await;
    for expected in ["10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6", "10.1.2.2"] {
        assert_eq!(four(&add(&cluster, expected, &["p4"]).await), expected, "around the ring");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_23_and_28_two_pools_in_the_order_named_and_two_networks_of_one_pool() {
    let cluster = with(&[("a", "10.1.0.0/30"), ("b", "10.1.0.4/30")]).await;
    let pools = ["a", "b"];
    assert_eq!(four(&add(&cluster, "c1", &pools).await), "10.1.0.2");
    assert_eq!(four(&add(&cluster, "c2", &pools).await), "10.1.0.6", "it rolls over to the second");
    add(&cluster, "c3", &pools).await.fails(101);
    del(&cluster, "c1").await;
    assert_eq!(four(&add(&cluster, "c3", &pools).await), "10.1.0.2", "and comes back to the first");

    del(&cluster, "c2").await;
    del(&cluster, "c3").await;
    put(&cluster.ask(), "subnets", json!({"name": "lan", "cidr": "10.2.0.0/24"})).await;
    put(&cluster.ask(), "pools", json!({"name": "lan", "subnet": "lan"})).await;
    let mut given = Vec::new();
    for name in ["net-a", "net-b"] {
        let mut conf = network(&cluster.urls(), "node-1", &["lan"]);
        conf["name"] = json!(name);
        given.push(four(&Plugin::new("ADD", "c1", &conf).run().await));
    }
    assert_eq!(given, ["10.2.0.1", "10.2.0.2"], "one container, two networks, one pool");
    del(&cluster, "c1").await;
    assert_eq!(held_in(&cluster.ask(), "lan").await, 2, "a DEL of a third network frees neither");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_29_to_35_requested_addresses() {
    let cluster = with(&[("p4", "10.1.2.0/29"), ("p6", "2001:db8:1::/64")]).await;
    let both = ["p4", "p6"];
    let ask = async |container: &str, wanted: &str| {
        plugin(&cluster, "ADD", container, &both).arguments(&format!("IP={wanted}")).run().await
    };
    let first = ask("c1", "10.1.2.5").await;
    assert_eq!(four(&first), "10.1.2.5");
    assert_eq!(first.addresses().len(), 2, "and a chosen one of the other family");
    let texts = ask("c2", "10.1.2.5").await.fails(107);
    assert!(texts.contains("10.1.2.5"), "{texts}");
    assert!(ask("c2", "10.1.2.1").await.fails(109).contains("gateway"));
    ask("c2", "10.1.3.5").await.fails(108);
    // Two of one pool where each interface gets one: neither.
    let texts = ask("c2", "10.1.2.3,10.1.2.4").await;
    assert_eq!(texts.code, Some(1), "{texts:?}");
    let pair = ask("c3", "10.1.2.6,2001:db8:1::99").await.addresses();
    let expected: [IpAddr; 2] = ["10.1.2.6".parse().unwrap(), "2001:db8:1::99".parse().unwrap()];
    assert_eq!(pair, expected);
    assert_eq!(held_in(&cluster.ask(), "p6").await, 2, "what was refused kept nothing");
    assert_eq!(held_in(&cluster.ask(), "p4").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vector_39_pools_that_make_no_sense_are_configuration_errors() {
    let cluster = with(&[("lan", "10.1.2.0/24")]).await;
    let client = cluster.ask();
    let refused = async |plural: &str, body: Value| -> Problem {
        let call = Call::put(format!("/v1/{plural}/x")).json(&body).unwrap();
        client.send(call).await.unwrap_err()
    };
    for (plural, body, code) in [
        ("subnets", json!({"name": "x", "cidr": "10.1.2.12/24"}), Code::CidrHasHostBits),
        ("subnets", json!({"name": "x", "cidr": "10.1.2.128/25"}), Code::Overlap),
        ("pools", json!({"name": "x", "subnet": "lan", "ranges": ["10.1.2.3-10.1.2.4"]}), Code::Overlap),
        (
            "pools",
            json!({"name": "x", "subnet": "lan", "ranges": ["10.1.2.3", "2001:db8::1"]}),
            Code::FamilyMismatch,
        ),
        (
            "pools",
            json!({"name": "x", "subnet": "lan", "ranges": ["10.1.1.9-10.1.2.9"]}),
            Code::OutsideSubnet,
        ),
        (
            "pools",
            json!({"name": "x", "subnet": "lan", "ranges": ["10.1.2.9-10.1.2.3"]}),
            Code::RangeReversed,
        ),
    ] {
        let problem = refused(plural, body).await;
        assert_eq!((problem.code, problem.code.entry().cni), (code, 7), "{problem}");
    }
    // A /31 has two hosts (RFC 3021), and both are allocated.
    put(&client, "subnets", json!({"name": "link", "cidr": "10.3.0.0/31"})).await;
    put(&client, "pools", json!({"name": "link", "subnet": "link"})).await;
    assert_eq!(four(&add(&cluster, "c1", &["link"]).await), "10.3.0.0");
    assert_eq!(four(&add(&cluster, "c2", &["link"]).await), "10.3.0.1");
    add(&cluster, "c3", &["link"]).await.fails(101);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_40_to_42_exclusions_and_wide_ranges() {
    let cluster = Cluster::up(1).await;
    let client = cluster.ask();
    for (name, cidr, ranges, exclude, first) in [
        ("a", "192.168.1.0/24", vec![], vec!["192.168.1.0/28", "192.168.1.16/28"], "192.168.1.32"),
        ("b6", "caa5::/112", vec![], vec!["caa5::/113"], "caa5::8000"),
        ("c6", "fd00::/116", vec![], vec![], "fd00::1"),
        (
            "d6",
            "2001:db8:5422:5::/64",
            vec!["2001:db8:5422:5::-2001:db8:5422:5:7fff:ffff:ffff:ffff"],
            vec![],
            "2001:db8:5422:5::1",
        ),
        (
            "e6",
            "2001:db8:9::/64",
            vec!["2001:db8:9::ffff:ffff:ffff:fffe-2001:db8:9:0:ffff:ffff:ffff:ffff"],
            vec!["2001:db8:9::ffff:ffff:ffff:fffe-2001:db8:9:0:ffff:ffff:ffff:fffe"],
            "2001:db8:9:0:ffff:ffff:ffff:ffff",
        ),
    ] {
        put(&client, "subnets", json!({"name": name, "cidr": cidr})).await;
        put(&client, "pools", json!({"name": name, "subnet": name, "ranges": ranges, "exclude": exclude}))
            .await;
        assert_eq!(four(&add(&cluster, name, &[name]).await), first, "{name}");
    }
    // The last address of all, and then no more.
    add(&cluster, "c9", &["e6"]).await.fails(101);
    let wide: Resource<Pool, PoolStatus> = get(&client, "/v1/pools/d6").await.unwrap();
    assert!(wide.status.counts.saturated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vector_54_a_stale_release_leaves_the_new_owner_alone() {
    let cluster = with(&[("p4", "10.1.2.0/30")]).await;
    let client = cluster.ask();
    let address = add(&cluster, "c1", &["p4"]).await.addresses()[0];
    let old = known(&client, address).await.allocation.unwrap();
    del(&cluster, "c1").await;
    assert_eq!(add(&cluster, "c2", &["p4"]).await.addresses(), [address]);
    let stale = client.send(Call::delete(format!("/v1/allocations/{}", old.id))).await;
    assert_eq!(stale.unwrap_err().code, Code::AllocationChanged);
    del(&cluster, "c1").await;
    let held = allocations(&client).await;
    assert_eq!(held.len(), 1);
    assert!(held[0].id > old.id);
    assert_eq!(held[0].endpoint.name.as_str(), "c2");
}
