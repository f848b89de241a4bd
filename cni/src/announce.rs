//! Announcement of a container's addresses, so that hosts replace cached MAC addresses of former holders.
//!
//! Main plugins have the kernel announce IPv4 addresses (`arp_notify`), and before version 1.2 no IPv6
//! addresses. The addresses aren't configured yet when this process runs, so the kernel of the container
//! announces those of IPv6 as soon as they are usable. Behind a bridge, the announcement of an IPv4 address
//! is lost: the kernel sends it before the port of the bridge forwards. There the agent of the node
//! announces it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use ipam_api::mac::MacAddress;
use ipam_api::name::InterfaceName;
use nix::ifaddrs::getifaddrs;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::config::Network;
use crate::link::is_bridge;

/// Makes the kernel announce the IPv6 addresses of a container's interface. Has no effect without the
/// permission or without the interface.
pub fn announce(network_namespace: &str, interface: &InterfaceName) {
    // The kernel shows each thread the settings of its own namespace.
    let setting = format!("/proc/sys/net/ipv6/conf/{interface}/ndisc_notify");
    let write = move || OpenOptions::new().write(true).open(setting)?.write_all(b"1");
    let _ = inside(network_namespace, write);
}

/// MAC address of a container's interface behind a bridge, for the agent's announcement.
#[must_use]
pub fn mac_behind_bridge(
    network: &Network,
    network_namespace: &str,
    interface: &InterfaceName,
) -> Option<MacAddress> {
    if !is_bridge(network) {
        return None;
    }
    let name = interface.to_string();
    let octets = inside(network_namespace, move || {
        let found = getifaddrs()?.filter(|found| found.interface_name == name);
        let links = found.filter_map(|found| found.address?.as_link_addr()?.addr());
        Ok(links.into_iter().next())
    });
    octets.ok().flatten().map(MacAddress::new)
}

/// Runs a function in a network namespace, on a thread of its own: only the thread's namespace changes.
fn inside<T: Send + 'static>(
    network_namespace: &str,
    run: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let namespace = File::from(rustix::fs::open(network_namespace, flags, Mode::empty())?);
    let thread = std::thread::Builder::new().spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        run()
    });
    thread?.join().unwrap_or_else(|_| Err(io::Error::other("the thread ended early")))
}
