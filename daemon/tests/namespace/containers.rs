//! Containers that get addresses of both families, use them, and release them.

use std::net::IpAddr;
use std::process::Output;
use std::time::Duration;

use ipam_api::client::Call;
use ipamd::dev::Lab;
use serde_json::{Value, json};

use crate::namespace::wire::reaches;
use crate::support::ask::{known, put};
use crate::support::{Cluster, LONG, programs};

/// A cluster with a subnet and a pool of each family, and a node that it serves.
async fn scene(main: Value) -> (Cluster, Lab) {
    let cluster = Cluster::up(3).await;
    for (name, cidr, gateway) in
        [("lan", "10.99.0.0/24", "10.99.0.1"), ("lan6", "2001:db8:99::/64", "2001:db8:99::1")]
    {
        put(&cluster.ask(), "subnets", json!({"name": name, "cidr": cidr, "gateway": gateway})).await;
        put(&cluster.ask(), "pools", json!({"name": name, "subnet": name})).await;
    }
    // Over a socket: a namespace has no way to the members' ports.
    let ipam = json!({
        "type": "ipam-cni", "node": "node-1", "socket": cluster.members[0].socket(),
        "ipv4_pools": ["lan"], "ipv6_pools": ["lan6"],
    });
    let (lab, why) = Lab::make_with(programs::ipam_cni(), main, ipam).await.unwrap();
    assert!(
        why.is_none(),
        "this test needs real interfaces, and there are none: {}",
        why.unwrap_or_default()
    );
    (cluster, lab)
}

fn bridge() -> Value {
    json!({"cniVersion": "1.0.0", "name": "lan", "type": "bridge", "bridge": "br0", "isDefaultGateway": true})
}

fn addresses(lab: &Lab, container: usize) -> Vec<IpAddr> {
    let shown = lab.containers()[container].addresses();
    shown.iter().map(|address| address.split('/').next().unwrap().parse().unwrap()).collect()
}

/// Both reach each other over both families.
async fn reach_each_other(lab: &Lab) {
    let place = |at| (lab.namespace(at).unwrap(), addresses(lab, at));
    let ((one, ones), (other, others)) = (place(0), place(1));
    for (mine, theirs) in ones.into_iter().zip(others) {
        assert_eq!(mine.is_ipv4(), theirs.is_ipv4());
        reaches((one, mine), (other, theirs)).await;
        reaches((other, theirs), (one, mine)).await;
    }
}

async fn states(cluster: &Cluster, addresses: &[IpAddr]) -> Vec<String> {
    let mut states = Vec::new();
    for at in 0..3 {
        for address in addresses {
            states.push(known(&cluster.at(at), *address).await.state);
        }
    }
    states.dedup();
    states
}

/// A failure's code and texts, as the main plugin hands them on.
#[track_caller]
fn failure(output: &Output) -> (u64, String) {
    assert!(!output.status.success());
    let error: Value = serde_json::from_slice(&output.stdout).unwrap();
    (error["code"].as_u64().unwrap(), error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_on_a_bridge_reach_each_other_and_a_third_gets_other_addresses() {
    let (cluster, mut lab) = scene(bridge()).await;
    for _ in 0..2 {
        lab.add().await.unwrap();
        let newest = lab.containers().len() - 1;
        assert_eq!(addresses(&lab, newest).len(), 2);
        assert_eq!(states(&cluster, &addresses(&lab, newest)).await, ["allocated"]);
    }
    // The configured addresses are the allocated ones.
    let shown = lab.inside(0, &["ip", "-o", "address", "show", "dev", "eth0"]).await.unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for address in lab.containers()[0].addresses() {
        assert!(shown.contains(&format!(" {address} ")), "{address} is not in {shown}");
    }
    reach_each_other(&lab).await;

    let (first, second) = (addresses(&lab, 0), addresses(&lab, 1));
    lab.delete().await.unwrap();
    assert_eq!(states(&cluster, &first).await, ["cooling"]);
    assert_eq!(states(&cluster, &second).await, ["allocated"]);
    lab.add().await.unwrap();
    let third = addresses(&lab, 1);
    assert!(third.iter().all(|address| !first.contains(address) && !second.contains(address)), "{third:?}");
    reach_each_other(&lab).await;
    lab.end().await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_sees_what_an_administrator_took_away() {
    let (cluster, mut lab) = scene(bridge()).await;
    lab.add().await.unwrap();
    let passed = lab.tell(0, "CHECK").await.unwrap();
    assert!(passed.status.success(), "{passed:?}");
    let address = addresses(&lab, 0)[0];
    let allocation = known(&cluster.ask(), address).await.allocation.unwrap();
    cluster.ask().send(Call::delete(format!("/v1/allocations/{}", allocation.id))).await.unwrap();
    let (code, texts) = failure(&lab.tell(0, "CHECK").await.unwrap());
    assert_eq!(code, 117, "{texts}");
    assert!(texts.contains(&address.to_string()), "{texts}");
    lab.end().await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_del_without_an_answer_fails_and_works_when_it_is_repeated() {
    let (mut cluster, mut lab) = scene(bridge()).await;
    lab.add().await.unwrap();
    let given = addresses(&lab, 0);
    cluster.kill_all();
    lab.set_deadline(Duration::from_secs(1));
    let (code, texts) = failure(&lab.tell(0, "DEL").await.unwrap());
    assert_eq!(code, 11, "{texts}");
    lab.set_deadline(LONG);
    cluster.start_all();
    cluster.ready().await;
    assert_eq!(states(&cluster, &given).await, ["allocated"]);
    for _ in 0..2 {
        let deleted = lab.tell(0, "DEL").await.unwrap();
        assert!(deleted.status.success(), "{deleted:?}");
    }
    assert_eq!(states(&cluster, &given).await, ["cooling"]);
    lab.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_on_a_macvlan_reach_each_other() {
    let main = json!({"cniVersion": "1.0.0", "name": "lan", "type": "macvlan", "master": "uplink"});
    let (cluster, mut lab) = scene(main).await;
    // One end of a cable stands in for a network card.
    for line in
        ["ip link add uplink type veth peer name switch", "ip link set uplink up", "ip link set switch up"]
    {
        lab.on_node(&line.split(' ').collect::<Vec<_>>()).await.unwrap();
    }
    lab.add().await.unwrap();
    lab.add().await.unwrap();
    reach_each_other(&lab).await;
    lab.end().await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_on_routed_cables_reach_each_other() {
    let main = json!({"cniVersion": "1.0.0", "name": "lan", "type": "ptp", "ipMasq": false});
    let (cluster, mut lab) = scene(main).await;
    lab.add().await.unwrap();
    lab.add().await.unwrap();
    reach_each_other(&lab).await;
    lab.end().await.unwrap();
    assert_eq!(cluster.settled().await.addresses.allocated, 0);
}
