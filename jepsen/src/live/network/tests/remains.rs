//! Removal of hosts and of the network.

use std::fs;

use super::super::Network;
use super::support::udp;

/// True if this process keeps a namespace with this link.
fn is_kept(link: &str) -> bool {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    descriptors.flatten().any(|one| fs::read_link(one.path()).is_ok_and(|to| to.as_os_str() == link))
}

#[test]
fn nothing_remains_of_a_network() {
    let network = Network::make(1).unwrap();
    let host = network.add_host("n1", 1).unwrap();
    network.add_host("n2", 2).unwrap();
    let link = host.run("readlink /proc/self/ns/net").unwrap();
    assert!(is_kept(&link));
    drop(network);
    let devices = host.run("ip -o link | awk '{ print $2 }'").unwrap();
    assert_eq!(devices, "lo:");
    drop(host);
    assert!(!is_kept(&link));
}

#[test]
fn a_removed_host_can_be_added_again() {
    let network = Network::make(1).unwrap();
    let other = network.add_host("n1", 1).unwrap();
    let mut forwarded = 0;
    for _ in 0..5 {
        let host = network.add_host("n2", 2).unwrap();
        let (from, to) = (udp(&host, host.ipv4), udp(&other, other.ipv4));
        from.send_to(b"x", to.local_addr().unwrap()).unwrap();
        assert_eq!(to.recv(&mut [0; 4]).unwrap(), 1);
        network.remove_host("n2");
        network.remove_host("n2");
        assert_eq!(host.run("ip -o link | wc -l").unwrap(), "1");
        let count = network.counters().hosts["n2"].forwarded;
        assert!(count > forwarded, "{count} after {forwarded}");
        forwarded = count;
    }
    assert_eq!(network.hosts(), ["n1"]);
}
