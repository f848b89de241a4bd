//! Interfaces of other network managers.

use super::rack::Rack;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n5_13_an_interface_of_networkmanager_is_refused_and_another_is_configured() {
    let rack = Rack::make(1, 10).await;
    let interface = |name: &str| format!("[[interface]]\nname = \"{name}\"\nipv4_pools = [\"lan\"]\n");
    rack.configure(&rack.sockets(), "", &(interface("eth1") + &interface("eth2") + &interface("eth9")));
    let mut host = rack.host("h1");
    host.run(
        "ip link add eth2 type veth peer name cable && ip link set cable up && \
         mkdir -p /run/NetworkManager/devices && \
         echo '[device]\nmanaged=true' > /run/NetworkManager/devices/$(cat /sys/class/net/eth1/ifindex)",
    );
    host.start_agent(&rack);
    host.has("eth2", 1).await;
    let status = host.is("applied").await;
    assert!(host.addresses("eth1").is_empty());
    let refused = status["interfaces"][0]["refused"].as_str().unwrap();
    for part in
        ["eth1 is managed by NetworkManager", "mode = \"render\"", "/etc/NetworkManager/system-connections"]
    {
        assert!(refused.contains(part), "{refused}");
        assert!(host.logged().contains(part.split('"').next().unwrap()), "{}", host.logged());
    }
    // A section for other hosts of the rack.
    assert!(status["warnings"][0].as_str().unwrap().contains("eth9"), "{status}");

    host.run("rm /run/NetworkManager/devices/*");
    host.has("eth1", 1).await;
}
