//! Conflicts, gateways and checks ahead of time, with real agents on a real segment.

use std::net::IpAddr;

use ipam_api::probe::Quarantine;
use ipam_api::resource::Page;
use serde_json::{Value, json};

use crate::namespace::lan::{Lan, addresses, failure};
use crate::support::ask::{get, known};
use crate::support::until;

/// MAC address of the foreign host.
const FOREIGN: &str = "02:00:00:00:99:02";

/// Line of the agent's log for each ADD that probes.
const PROBES_OF_ADD: &str = "probing addresses of an ADD";

async fn quarantines(lan: &Lan) -> Vec<Quarantine> {
    let page: Page<Quarantine> = get(&lan.ask(), "/v1/quarantines").await.unwrap();
    page.items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_gets_another_address_than_that_of_a_foreign_host_on_macvlan() {
    foreign_host(json!({"type": "macvlan", "master": "eth0"})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_gets_another_address_than_that_of_a_foreign_host_on_a_bridge() {
    foreign_host(json!({"type": "bridge", "bridge": "cni0"})).await;
}

async fn foreign_host(main: Value) {
    let lan = Lan::make(json!({"conflicts": true})).await;
    // The first addresses of both pools.
    let foreign = lan.host(FOREIGN, 250);
    foreign.run("ip address add 10.99.0.10/24 dev eth0 && ip address add 2001:db8:99::10/64 dev eth0 nodad");
    let mut node = lan.node("n1", 201).await;
    if main["type"] == "bridge" {
        node.bridge(201);
    }
    let given = addresses(&node.add_with(main));
    let taken = ["10.99.0.10", "2001:db8:99::10"].map(|text| text.parse().unwrap());
    assert!(given.len() == 2 && taken.iter().all(|one| !given.contains(one)), "{given:?}");
    for address in taken {
        let all = quarantines(&lan).await;
        let one = all.iter().find(|one| one.address == address).unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(
            (one.mac.to_string().as_str(), one.reported_by.to_string().as_str()),
            (FOREIGN, "default/n1")
        );
        assert_eq!(known(&lan.ask(), address).await.state, "quarantined");
    }
    let held = lan.held_on("n1").await;
    assert!(held.len() == 2 && held.iter().all(|one| one.checked), "{held:?}");
    let events: Value = get(&lan.ask(), "/v1/events?kind=address&limit=100").await.unwrap();
    let events = events["items"].as_array().unwrap();
    let quarantined: Vec<_> = events.iter().filter(|one| one["type"] == "address.quarantined").collect();
    assert!(
        quarantined.len() == 2 && quarantined.iter().all(|one| one["macs"] == json!([FOREIGN])),
        "{events:?}"
    );
    // The command that fsck shows adopts the host, and the finding ends.
    let found = lan.fsck("foreign-host");
    assert!(found.len() == 2 && found.iter().all(|one| one["class"] == "unknown"), "{found:?}");
    for (number, one) in found.iter().enumerate() {
        let adopt = one["commands"].as_array().unwrap().last().unwrap().as_str().unwrap();
        let adopt = adopt.strip_prefix("ipamctl ").unwrap().replace("NAME", &format!("printer-{number}"));
        let adopted = lan.ipamctl(&adopt);
        assert!(adopted.status.success(), "{adopt}: {adopted:?}");
    }
    assert_eq!(lan.fsck("foreign-host"), Vec::<Value>::new());
    assert_eq!(known(&lan.ask(), taken[0]).await.state, "allocated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_gateway_blocks_only_where_configured() {
    let lan = Lan::make(json!({"gateway": true})).await;
    let mut node = lan.node("n1", 201).await;
    let (code, texts) = failure(&node.add());
    assert!(code == 113 && texts.contains("10.99.0.1"), "{code} {texts}");
    until("the addresses are released", async || match lan.held_on("n1").await {
        held if held.is_empty() => Ok(()),
        held => Err(format!("{held:?}")),
    })
    .await;
    let _router = lan.host("02:00:00:00:00:01", 1);
    assert_eq!(addresses(&node.add()).len(), 2);
    let silent = Lan::make(json!({})).await;
    let mut node = silent.node("n1", 201).await;
    assert_eq!(addresses(&node.add()).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_checked_before_any_request() {
    let lan = Lan::make(json!({"conflicts": true})).await;
    let foreign = lan.host(FOREIGN, 250);
    foreign.run("ip address add 10.99.0.11/24 dev eth0 && ip address add 2001:db8:99::11/64 dev eth0 nodad");
    let mut node = lan.node("n1", 201).await;
    until("the foreign host is found ahead of a request", async || match quarantines(&lan).await {
        all if all.len() == 2 => Ok(()),
        all => Err(format!("{all:?}")),
    })
    .await;
    for _ in 0..3 {
        let given = addresses(&node.add());
        assert!(!given.contains(&"10.99.0.11".parse().unwrap()), "{given:?}");
    }
    let held = lan.held_on("n1").await;
    assert!(held.len() == 6 && held.iter().all(|one| one.checked), "{held:?}");
    // No ADD probed an address itself, but one does for an address that was not next.
    assert!(!node.logged().contains(PROBES_OF_ADD), "{}", node.logged());
    let far = json!({"cni": {"ips": ["10.99.0.90"]}});
    addresses(&node.add_with(json!({"type": "macvlan", "master": "eth0", "args": far})));
    assert!(node.logged().contains(PROBES_OF_ADD), "{}", node.logged());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stations_with_one_allocated_address_are_a_collision() {
    let lan = Lan::make(json!({"conflicts": true})).await;
    let mut one = lan.node("n1", 201).await;
    let _two = lan.node("n2", 202).await;
    let given = addresses(&one.add());
    lan.heard("n1").await;
    let thief = lan.host(FOREIGN, 250);
    thief.run(&format!("ip address add {}/24 dev eth0", given[0]));
    until("the collision is found", async || {
        let held = lan.held_on("n1").await;
        let colliding = held.iter().find_map(|one| one.colliding).map(|mac| mac.to_string());
        if colliding.as_deref() == Some(FOREIGN) { Ok(()) } else { Err(format!("{held:?}")) }
    })
    .await;
    let pool: Value = get(&lan.ask(), "/v1/pools/lan").await.unwrap();
    let conditions = pool["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "IPCollision"), "{conditions:?}");
    assert_eq!(known(&lan.ask(), given[0]).await.state, "allocated", "a collision frees nothing");
    let found = lan.fsck("collision");
    assert!(found.len() == 1 && found[0]["class"] == "mismatched", "{found:?}");
    let macs = found[0]["macs"].as_array().unwrap();
    assert!(macs.len() == 2 && macs[1] == json!(FOREIGN), "{macs:?}");
    // Its correction needs a request.
    let report = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(report.path(), lan.ipamctl("fsck -o json").stdout).unwrap();
    let apply = format!("fsck --yes --apply {}", report.path().display());
    assert!(lan.ipamctl(&apply).status.success());
    assert_eq!(known(&lan.ask(), given[0]).await.state, "allocated");
    let output = lan.ipamctl(&format!("{apply} --take-newer"));
    assert!(output.status.success(), "{output:?}");
    assert_ne!(known(&lan.ask(), given[0]).await.state, "allocated");
    assert_eq!(lan.fsck("collision"), Vec::<Value>::new());
    // The next ADD doesn't get the address of the other host.
    let node_args = json!({"cni": {"ips": [given[0].to_string()]}});
    let refused = one.add_with(json!({"type": "macvlan", "master": "eth0", "args": node_args}));
    assert!(!refused.status.success(), "{refused:?}");
    assert_eq!(known(&lan.ask(), given[0]).await.state, "quarantined");
}

/// The kernel's own announcement is lost: the port of the bridge does not forward yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_learns_the_new_holder_of_an_address_behind_a_bridge() {
    let lan = Lan::make(json!({})).await;
    let mut node = lan.node("n1", 201).await;
    node.bridge(201);
    let host = lan.host("02:00:00:00:00:05", 5);
    host.run("ip neighbor replace 10.99.0.10 lladdr 02:00:00:00:99:99 dev eth0 nud reachable");
    let output = node.add_with(json!({"type": "bridge", "bridge": "cni0"}));
    assert_eq!(addresses(&output)[0], "10.99.0.10".parse::<IpAddr>().unwrap());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let interfaces = result["interfaces"].as_array().unwrap();
    let inside = interfaces.iter().find(|one| one["sandbox"] != "" && one["sandbox"].is_string()).unwrap();
    let mac = inside["mac"].as_str().unwrap();
    until("the host knows the new holder", async || {
        let known = host.run("ip neighbor show 10.99.0.10");
        if known.contains(mac) { Ok(()) } else { Err(format!("{known:?} instead of {mac}")) }
    })
    .await;
}
