//! Interfaces of this host, and the one on whose link an address is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{LinkAddr, SockaddrStorage};
use pnet_base::MacAddr;

/// Hardware type of Ethernet (`ARPHRD_ETHER`).
const ETHERNET: u16 = 1;
/// Octets of an Ethernet address.
const MAC_BYTES: usize = 6;

/// Network interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// Link-layer address with the interface's index, to which a packet socket is bound.
    pub link: LinkAddr,
    /// Addresses with their prefixes.
    pub networks: Vec<IpNet>,
    /// True if an administrator has switched it on.
    pub is_up: bool,
}

impl Interface {
    /// Ethernet address; `None` for loopback and tunnels, which have no ARP and no NDP.
    #[must_use]
    pub fn mac(&self) -> Option<MacAddr> {
        let is_ethernet = (self.link.hatype(), self.link.halen()) == (ETHERNET, MAC_BYTES);
        self.link.addr().filter(|_| is_ethernet).map(MacAddr::from)
    }

    /// Link-local address, the source of neighbour discovery.
    #[must_use]
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.networks.iter().find_map(|network| match network.addr() {
            IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
            _ => None,
        })
    }

    /// Longest prefix of the interface that contains an address.
    fn covers(&self, address: IpAddr) -> Option<u8> {
        self.networks.iter().filter(|network| network.contains(&address)).map(IpNet::prefix_len).max()
    }
}

/// All interfaces of a network namespace, at one moment.
#[derive(Debug, Clone)]
pub struct Interfaces(Vec<Interface>);

impl Interfaces {
    /// Reads the interfaces of this process's network namespace.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn read() -> io::Result<Self> {
        let mut links: BTreeMap<String, Interface> = BTreeMap::new();
        let mut networks = Vec::new();
        for found in getifaddrs()? {
            // IPv4 addresses may have a label, such as `eth0:1`. A name has no colon.
            let name = found.interface_name.split(':').next().unwrap_or_default().to_owned();
            let Some(address) = found.address else { continue };
            if let Some(link) = address.as_link_addr() {
                let is_up = found.flags.contains(InterfaceFlags::IFF_UP);
                links.insert(name.clone(), Interface { name, link: *link, networks: Vec::new(), is_up });
            } else if let Some(network) =
                ip(&address).zip(found.netmask.as_ref().and_then(ip)).and_then(network)
            {
                networks.push((name, network));
            }
        }
        for (name, network) in networks {
            if let Some(interface) = links.get_mut(&name) {
                interface.networks.push(network);
            }
        }
        Ok(Self(links.into_values().collect()))
    }

    /// All interfaces in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        self.0.iter()
    }

    /// Names of all interfaces.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|interface| interface.name.as_str())
    }

    /// Interface with a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.name == name)
    }

    /// Interface with the longest prefix that contains the address; among equal ones, one that is up.
    ///
    /// None for link-local addresses, since each link has the same prefix.
    #[must_use]
    pub fn covering(&self, address: IpAddr) -> Option<&Interface> {
        if matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()) {
            return None;
        }
        let covering = self.0.iter().filter_map(|one| Some((one.covers(address)?, one)));
        covering.min_by_key(|(length, one)| Reverse((*length, one.is_up))).map(|(_, one)| one)
    }

    /// Ethernet addresses of this host.
    #[must_use]
    pub fn macs(&self) -> BTreeSet<MacAddr> {
        self.0.iter().filter_map(Interface::mac).collect()
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

fn network((address, mask): (IpAddr, IpAddr)) -> Option<IpNet> {
    IpNet::with_netmask(address, mask).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, is_up: bool, networks: &[&str]) -> Interface {
        // Any link-layer address: tests of the choice need none.
        let link = Interfaces::read().unwrap().0.first().unwrap().link;
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Interface { name: name.to_owned(), link, networks, is_up }
    }

    #[test]
    fn the_longest_prefix_decides_and_then_who_is_up() {
        let interfaces = Interfaces(vec![
            interface("wide", true, &["10.0.0.1/8", "fe80::1/64", "2001:db8::1/32"]),
            interface("down", false, &["10.1.0.1/16"]),
            interface("up", true, &["10.1.0.2/16", "fe80::2/64"]),
        ]);
        for (address, name) in [
            ("10.2.0.9", Some("wide")),
            ("10.1.0.9", Some("up")),
            ("2001:db8::9", Some("wide")),
            ("192.0.2.1", None),
            ("fe80::9", None),
        ] {
            let found = interfaces.covering(address.parse().unwrap()).map(|one| one.name.as_str());
            assert_eq!(found, name, "{address}");
        }
        assert_eq!(interfaces.named("up").and_then(Interface::link_local), "fe80::2".parse().ok());
        assert!(interfaces.named("down").unwrap().link_local().is_none());
    }

    #[test]
    fn loopback_is_an_interface_without_ethernet_addresses() {
        let interfaces = Interfaces::read().unwrap();
        let lo = interfaces.covering("127.0.0.9".parse().unwrap()).unwrap();
        assert_eq!((lo.name.as_str(), lo.mac()), ("lo", None));
        assert!(interfaces.names().any(|name| name == "lo"));
    }
}
