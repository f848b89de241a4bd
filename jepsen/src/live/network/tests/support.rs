//! Two hosts with UDP sockets.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::{Count, Host, Link, Network};

/// Time limit for an event that must come.
const LIMIT: Duration = Duration::from_secs(10);
/// Number of the last datagram of a series.
const END: u32 = u32::MAX;

/// A network of two hosts that know each other's addresses.
pub(super) struct Pair {
    pub(super) network: Network,
    pub(super) a: Arc<Host>,
    pub(super) b: Arc<Host>,
    pub(super) from: UdpSocket,
    pub(super) to: UdpSocket,
}

impl Pair {
    pub(super) fn make(family: fn(&Host) -> IpAddr) -> Self {
        let network = Network::make(1).unwrap();
        let (a, b) = (network.add_host("a", 1).unwrap(), network.add_host("b", 2).unwrap());
        let (from, to) = (udp(&a, family(&a)), udp(&b, family(&b)));
        from.connect(to.local_addr().unwrap()).unwrap();
        to.connect(from.local_addr().unwrap()).unwrap();
        let pair = Self { network, a, b, from, to };
        pair.echo();
        pair
    }

    /// Sends a datagram in each direction, and waits for its arrival.
    pub(super) fn echo(&self) {
        let mut buffer = [0; 16];
        for (from, to) in [(&self.from, &self.to), (&self.to, &self.from)] {
            from.send(b"x").unwrap();
            assert_eq!(to.recv(&mut buffer).unwrap(), 1);
        }
    }

    /// Sends datagrams with the numbers 0 to `count`, 200 bytes each, and waits until the switch has them.
    pub(super) fn send(&self, count: u32) {
        let before = self.count().sent;
        for number in 0..count {
            send_number(&self.from, number);
        }
        wait_for("frames", || self.count().sent >= before + u64::from(count));
    }

    /// Undoes all faults and returns the numbers that have arrived before a last datagram.
    pub(super) fn arrived(&self) -> Vec<u32> {
        self.network.heal_all();
        send_number(&self.from, END);
        std::iter::from_fn(|| Some(receive_number(&self.to)).filter(|number| *number != END)).collect()
    }

    /// Numbers of frames from `a` to `b`.
    pub(super) fn count(&self) -> Count {
        self.network.flows()[&self.there()].count
    }

    /// Link from `a` to `b`.
    pub(super) fn there(&self) -> Link {
        Link { from: "a".into(), to: "b".into() }
    }

    /// Link from `b` to `a`.
    pub(super) fn back(&self) -> Link {
        Link { from: "b".into(), to: "a".into() }
    }
}

/// UDP socket of a host.
pub(super) fn udp(host: &Host, address: impl Into<IpAddr> + Send) -> UdpSocket {
    let socket = host.within(|| Ok(UdpSocket::bind(SocketAddr::new(address.into(), 0))?)).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    socket
}

fn send_number(socket: &UdpSocket, number: u32) {
    let mut bytes = [0; 200];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    socket.send(&bytes).unwrap();
}

/// Waits for a datagram and returns its number.
pub(super) fn receive_number(socket: &UdpSocket) -> u32 {
    let mut bytes = [0; 200];
    assert_eq!(socket.recv(&mut bytes).unwrap(), bytes.len());
    assert!(bytes[4..].iter().all(|byte| *byte == 0), "damaged");
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// Returns true if no datagram waits at the socket.
pub(super) fn is_silent(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let silent = socket.recv(&mut [0; 16]).is_err();
    socket.set_nonblocking(false).unwrap();
    silent
}

/// Waits for a condition.
pub(super) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "no {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
