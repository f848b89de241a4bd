//! Settings of interfaces: VLAN, MTU, gateways, and selection by MAC address and pattern.

use serde_json::json;

use super::rack::{ETH1, Rack};
use crate::support::ask::put;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vlan_mtu_and_routes_are_configured_and_restored() {
    let rack = Rack::make(1, 10).await;
    let client = rack.cluster.ask();
    let routes = json!([{"destination": "10.50.0.0/16", "gateway": "192.0.2.1"}]);
    let subnet = json!({
        "name": "lan", "cidr": "10.99.0.0/16", "gateway": "10.99.0.1", "vlan": 100, "mtu": 1400,
    });
    put(&client, "subnets", subnet).await;
    put(&client, "subnets", json!({"name": "lan6", "cidr": "2001:db8:99::/64", "mtu": 1450})).await;
    let _ = routes;
    let mut host = rack.host("h1");
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!((host.addresses("eth1").len(), host.addresses("eth1.100").len()), (1, 1));
    let shown = host.run("ip -d link show eth1.100; ip link show eth1; ip route show default");
    for part in ["vlan protocol 802.1Q id 100", "mtu 1400", "mtu 1450", "default via 10.99.0.1 dev eth1.100"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    host.kill_agent();
    let released = host.agent_host(&rack, &["release"]);
    assert!(released.status.success(), "{released:?}");
    let shown = host.run("ip link show; ip route show; ip address show scope global");
    assert!(!shown.contains("eth1.100") && shown.contains("mtu 1500"), "{shown}");
    assert!(!shown.contains("10.99.") && !shown.contains("2001:db8"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interfaces_are_selected_by_mac_address_and_pattern() {
    let rack = Rack::make(1, 10).await;
    let mut host = rack.host("h1");
    let mac = host.run("cat /sys/class/net/eth1/address");
    let interfaces = ETH1.replace("name = \"eth1\"", &format!("mac = \"{}\"", mac.trim()))
        + "[[interface]]\nmatch = \"en*s?\"\nipv4_pools = [\"lan\"]\n";
    rack.configure(&rack.sockets(), "", &interfaces);
    for name in ["ens1", "enp0s2", "en2"] {
        host.run(&format!("ip link add {name} type dummy"));
    }
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!(host.addresses("eth1").len(), 2);
    assert_eq!([host.addresses("ens1"), host.addresses("enp0s2")].map(|one| one.len()), [1, 1]);
    assert!(host.addresses("en2").is_empty());
    // The same interface under another name keeps its addresses.
    let before = host.addresses("eth1");
    host.kill_agent();
    host.run("ip link set eth1 down && ip link set eth1 name lan0 && ip address flush dev lan0");
    host.forget_status();
    host.start_agent(&rack);
    host.is_served().await;
    assert_eq!(host.addresses("lan0"), before);
}
