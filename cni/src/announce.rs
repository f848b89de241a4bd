//! Announcement of IPv6 addresses by the kernel of the container's network namespace.
//!
//! Main plugins have the kernel announce IPv4 addresses (`arp_notify`), and before version 1.2 no IPv6
//! addresses. A host that remembers the former holder of an address would miss the new one. The address isn't
//! configured yet when this process runs, and the kernel announces it as soon as it is usable.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use ipam_api::name::InterfaceName;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Has the kernel announce the IPv6 addresses of a container's interface. Without the permission, or without
/// the interface, nothing is announced.
pub fn announce(network_namespace: &str, interface: &InterfaceName) {
    let (path, interface) = (network_namespace.to_owned(), interface.clone());
    // A thread of its own: only its namespace changes.
    let thread = std::thread::Builder::new().spawn(move || switch_on(&path, &interface));
    let _ = thread.map(std::thread::JoinHandle::join);
}

fn switch_on(network_namespace: &str, interface: &InterfaceName) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let namespace = File::from(rustix::fs::open(network_namespace, flags, Mode::empty())?);
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    // The kernel shows each thread the settings of its own namespace.
    let setting = format!("/proc/sys/net/ipv6/conf/{interface}/ndisc_notify");
    OpenOptions::new().write(true).open(setting)?.write_all(b"1")
}
