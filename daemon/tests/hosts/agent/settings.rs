//! Settings of interfaces: MTU, gateways and routes, selection by MAC address and pattern, and the mode.

use serde_json::json;

use super::rack::{ETH1, Rack};
use crate::support::ask::put;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mtu_and_routes_are_configured_and_restored() {
    let rack = Rack::make(1, 10).await;
    let client = rack.cluster.ask();
    let routes = json!([{"destination": "10.50.0.0/16", "gateway": "10.99.0.2"}]);
    let subnet = json!({
        "name": "lan", "cidr": "10.99.0.0/16", "gateway": "10.99.0.1", "mtu": 1400, "routes": routes,
    });
    put(&client, "subnets", subnet).await;
    let six = json!({
        "name": "lan6", "cidr": "2001:db8:99::/64", "gateway": "2001:db8:99::fff1", "mtu": 1450,
    });
    put(&client, "subnets", six).await;
    let mut host = rack.host("h1");
    host.run("ip link add eth2 type veth peer name cable && ip link set eth2 up");
    // Another default route, which precedes that of the agent.
    host.run("ip address add 192.0.2.1/24 dev eth2 && ip route add default via 192.0.2.9");
    host.start_agent(&rack);
    host.is_served().await;
    let shown = host.run("ip link show eth1; ip route show; ip -6 route show");
    for part in [
        "mtu 1400",
        "default via 10.99.0.1 dev eth1 proto 180 metric 512",
        "default via 192.0.2.9 dev eth2",
        "10.50.0.0/16 via 10.99.0.2 dev eth1 proto 180",
        "default via 2001:db8:99::fff1 dev eth1 proto 180 metric 512",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    host.kill_agent();
    let released = host.agent_host(&rack, &["release"]);
    assert!(released.status.success(), "{released:?}");
    let shown = host.run("ip link show eth1; ip route show; ip address show scope global; ip -6 route show");
    assert!(shown.contains("mtu 1500") && shown.contains("default via 192.0.2.9 dev eth2"), "{shown}");
    assert!(
        !shown.contains("proto 180") && !shown.contains("10.99.") && !shown.contains("2001:db8"),
        "{shown}"
    );
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
        host.run(&format!("ip link add {name} type veth peer name cable-{name}"));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_the_kernel_follow_the_mode() {
    let rack = Rack::make(1, 10).await;
    let mut host = rack.host("h1");
    let file = "/run/root/etc/netplan/60-ipamd.yaml";
    for (mode, count) in [("render", 0), ("both", 2), ("apply", 2)] {
        host.run("rm -rf /run/root && mkdir /run/root");
        let settings = format!("mode = \"{mode}\"\nformat = \"netplan\"\ndirectory = \"/run/root\"");
        rack.configure(&rack.sockets(), &settings, ETH1);
        host.forget_status();
        host.start_agent(&rack);
        host.is_served().await;
        assert_eq!(host.addresses("eth1").len(), count, "{mode}");
        if mode == "apply" {
            host.run(&format!("test ! -e {file}"));
        } else {
            let shown = host.run(&format!("stat -c %a {file}; cat {file}"));
            assert!(shown.starts_with("600\n") && shown.contains("10.99.1.0/16"), "{mode}: {shown}");
            assert!(shown.contains("2001:db8:99::1:0/64") && shown.contains("eth1"), "{mode}: {shown}");
        }
        host.kill_agent();
    }
}
