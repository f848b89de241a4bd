//! Reach of a host: the other hosts and nothing else.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

use super::super::Network;
use super::support::udp;

#[test]
fn hosts_reach_each_other_by_tcp_in_both_families() {
    let network = Network::make(1).unwrap();
    let (a, b) = (network.add_host("n1", 1).unwrap(), network.add_host("n2", 2).unwrap());
    for address in [IpAddr::from(b.ipv4), IpAddr::from(b.ipv6)] {
        let listener = b.within(|| Ok(TcpListener::bind(SocketAddr::new(address, 0))?)).unwrap();
        let to = listener.local_addr().unwrap();
        let sent = vec![7; 1 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| listener.accept().unwrap().0.write_all(&sent).unwrap());
            let mut stream = a.within(|| Ok(TcpStream::connect(to)?)).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert_eq!(got, sent);
        });
    }
}

#[test]
fn a_host_has_no_way_out() {
    let network = Network::make(1).unwrap();
    let (host, other) = (network.add_host("n1", 300).unwrap(), network.add_host("n2", 2).unwrap());
    assert_eq!(host.ipv4, Ipv4Addr::new(10, 77, 1, 44));
    let devices = host.run("ip -o link | awk '{ print $2 }'").unwrap();
    assert_eq!(devices.lines().collect::<Vec<_>>(), ["lo:", "eth0:"]);
    assert_eq!(host.run("ip -4 route").unwrap().lines().count(), 1);
    assert_eq!(host.run("ip route show default; ip -6 route show default").unwrap(), "");
    for outside in ["192.0.2.1:9", "1.1.1.1:53", "[2606:4700::1]:53"] {
        let outside: SocketAddr = outside.parse().unwrap();
        let sent = host.within(|| {
            let any: IpAddr = if outside.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
            Ok(UdpSocket::bind((any, 0))?.send_to(b"x", outside))
        });
        assert_eq!(sent.unwrap().unwrap_err().kind(), ErrorKind::NetworkUnreachable, "{outside}");
    }
    // The machine itself isn't on the segment: none of its devices has a route to the network.
    let here = std::fs::read_to_string("/proc/thread-self/net/route").unwrap();
    assert!(!here.contains("\t00004D0A\t"), "{here}");
    drop(other);
}

#[test]
fn devices_behind_a_host_have_addresses_of_their_own() {
    let network = Network::make(1).unwrap();
    let (a, b) = (network.add_host("c1", 11).unwrap(), network.add_host("c2", 12).unwrap());
    // Without this setting, eth0 answers for all devices of its namespace.
    a.run("echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore").unwrap();
    let made = "ip link add m0 link eth0 type macvlan mode bridge; ip link set m0 up
                ip addr add 10.77.128.1/17 dev m0; ip addr add fd77::8000:0:0:1/65 dev m0 nodad";
    a.run(made).unwrap();
    for address in ["10.77.128.1", "fd77::8000:0:0:1"] {
        let there = udp(&a, address.parse::<IpAddr>().unwrap());
        let here: IpAddr = if there.local_addr().unwrap().is_ipv4() { b.ipv4.into() } else { b.ipv6.into() };
        let here = udp(&b, here);
        here.send_to(b"x", there.local_addr().unwrap()).unwrap();
        let (_, from) = there.recv_from(&mut [0; 4]).unwrap();
        assert_eq!(from, here.local_addr().unwrap());
    }
    let neighbours = b.run("ip neigh show 10.77.128.1 | awk '{ print $5 }'").unwrap();
    assert!(!neighbours.is_empty() && neighbours != "02:00:00:77:00:0b", "{neighbours}");
}

#[test]
fn names_and_numbers_are_unique() {
    let network = Network::make(1).unwrap();
    network.add_host("n1", 1).unwrap();
    assert!(network.add_host("n1", 2).is_err());
    assert!(network.add_host("n2", 1).is_err());
    assert!(network.add_host("n3", 0).is_err() && network.add_host("n3", 0x8000).is_err());
    assert_eq!(network.hosts(), ["n1"]);
    network.add_host("n2", 2).unwrap();
}

#[test]
fn tasks_threads_and_children_of_a_runtime_are_inside() {
    let network = Network::make(1).unwrap();
    let host = network.add_host("n1", 1).unwrap();
    let inside = host.run("readlink /proc/self/ns/net").unwrap();
    let outside = std::fs::read_link("/proc/thread-self/ns/net").unwrap().display().to_string();
    assert_ne!(inside, outside);
    let runtime = host.runtime(2).unwrap();
    let link = || std::fs::read_link("/proc/thread-self/ns/net").unwrap().display().to_string();
    let address = (host.ipv4, 0);
    let task = runtime.spawn(async move {
        let _listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let child = tokio::process::Command::new("readlink").arg("/proc/self/ns/net").output().await.unwrap();
        let blocking = tokio::task::spawn_blocking(link).await.unwrap();
        [String::from_utf8(child.stdout).unwrap().trim().to_owned(), link(), blocking]
    });
    assert_eq!(runtime.block_on(task).unwrap(), [&inside, &inside, &inside].map(String::clone));
    let child = host.command("readlink").arg("/proc/self/ns/net").output().unwrap();
    assert_eq!(String::from_utf8(child.stdout).unwrap().trim(), inside);
}
