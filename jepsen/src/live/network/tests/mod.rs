//! Tests of the network with real namespaces; they need root and `/dev/net/tun`.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use super::Network;

#[test]
fn hosts_reach_each_other_by_tcp_in_both_families() {
    let network = Network::make(1).unwrap();
    let (a, b) = (network.add_host("n1", 1).unwrap(), network.add_host("n2", 2).unwrap());
    for address in [IpAddr::from(b.ipv4), IpAddr::from(b.ipv6)] {
        let listener = b.within(|| Ok(TcpListener::bind(SocketAddr::new(address, 0))?)).unwrap();
        let to = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _from) = listener.accept().unwrap();
                stream.write_all(b"hello").unwrap();
            });
            let mut stream = a.within(|| Ok(TcpStream::connect(to)?)).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello");
        });
    }
}
