//! Attempts with the network of live runs.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::scratch::Scratch;
use crate::live::network::{Host, Network};

/// Time limit for a datagram.
const LIMIT: Duration = Duration::from_secs(5);
/// Datagrams in each direction.
const ECHOES: usize = 200;

pub(super) fn namespaces(_scratch: &Scratch) -> Result<String> {
    let network = Network::make(0)?;
    let inside = network.add_host("a", 1)?.run("readlink /proc/self/ns/net")?;
    let outside = std::fs::read_link("/proc/thread-self/ns/net")?;
    if outside.as_os_str() == inside.as_str() {
        bail!("a host is in the namespace of this program");
    }
    Ok(inside)
}

pub(super) fn devices(_scratch: &Scratch) -> Result<String> {
    round_trip(|host| host.ipv4.into())
}

pub(super) fn ipv6(_scratch: &Scratch) -> Result<String> {
    round_trip(|host| host.ipv6.into())
}

pub(super) fn macvlan(_scratch: &Scratch) -> Result<String> {
    let network = Network::make(0)?;
    let script = "ip link add m0 link eth0 type macvlan mode bridge; ip -o link show m0 | awk '{ print $2 }'";
    network.add_host("a", 1)?.run(script)
}

/// Exchanges datagrams between two hosts and returns their median round-trip time.
fn round_trip(family: fn(&Host) -> IpAddr) -> Result<String> {
    let network = Network::make(0)?;
    let (a, b) = (network.add_host("a", 1)?, network.add_host("b", 2)?);
    let socket = |host: &Host| {
        let socket = host.within(|| Ok(UdpSocket::bind(SocketAddr::new(family(host), 0))?))?;
        socket.set_read_timeout(Some(LIMIT))?;
        anyhow::Ok(socket)
    };
    let (here, there) = (socket(&a)?, socket(&b)?);
    let mut times = Vec::new();
    let mut byte = [0];
    for _ in 0..ECHOES {
        let begun = Instant::now();
        here.send_to(b"x", there.local_addr()?)?;
        let (_, from) = there.recv_from(&mut byte).context("no datagram arrived")?;
        there.send_to(b"y", from)?;
        here.recv_from(&mut byte).context("no datagram came back")?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("no time")?;
    Ok(format!("round trip between two hosts: {} µs", median.as_micros()))
}
