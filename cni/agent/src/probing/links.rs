//! Links of this node, from its interfaces and from the configuration. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipam_api::limits::LINKS_PER_NODE_MAX;
use ipam_api::name::{InterfaceName, Name};
use ipam_api::probe::Link;
use ipnet::IpNet;
use pnet_base::MacAddr;

use crate::config::LinkConfig;
use crate::probe::{Interface, Interfaces};

/// Interface as it was found on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Name, such as `eth0`.
    pub name: String,
    /// Addresses with their prefixes.
    pub networks: Vec<IpNet>,
    /// True if an administrator has switched it on.
    pub is_up: bool,
    /// Ethernet address; none for other kinds of links, which have no ARP and no NDP.
    pub mac: Option<MacAddr>,
}

impl From<&Interface> for Found {
    fn from(interface: &Interface) -> Self {
        let Interface { name, networks, is_up, .. } = interface.clone();
        Self { name, networks, is_up, mac: interface.mac() }
    }
}

impl Found {
    /// All interfaces that were read.
    #[must_use]
    pub fn all(interfaces: &Interfaces) -> Vec<Self> {
        interfaces.iter().map(Self::from).collect()
    }

    fn has_address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.addr() == address)
    }

    /// Prefixes that identify the link. Loopback and link-local prefixes and single addresses do not.
    fn prefixes(&self) -> Vec<IpNet> {
        let is_everywhere = |address| match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_loopback(),
            IpAddr::V6(address) => address.is_unicast_link_local() || address.is_loopback(),
        };
        let identify = |one: &&IpNet| !is_everywhere(one.addr()) && one.prefix_len() < one.max_prefix_len();
        self.networks.iter().filter(identify).map(IpNet::trunc).collect()
    }
}

/// Link of one interface in one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLink {
    /// Interface that is on the link.
    pub interface: String,
    /// Network whose addresses the link has.
    pub network: Name,
    /// Addresses of the link.
    pub cidrs: Vec<IpNet>,
    /// True if the interface is up, and an Ethernet.
    pub is_probed: bool,
}

impl HostLink {
    fn covers(&self, address: IpAddr) -> Option<u8> {
        self.cidrs.iter().filter(|cidr| cidr.contains(&address)).map(IpNet::prefix_len).max()
    }
}

/// Links of the node at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    links: Vec<HostLink>,
    interfaces: BTreeMap<String, Found>,
    missing: Vec<InterfaceName>,
}

impl Links {
    /// Joins the configuration with the interfaces. Without configured links, every interface that is up has
    /// a link in the default network.
    #[must_use]
    pub fn new(configured: &[LinkConfig], found: &[Found]) -> Self {
        let is_probed = |one: &Found| one.is_up && one.mac.is_some();
        let by_name = |name: &InterfaceName| found.iter().find(|one| one.name == name.as_str());
        let links = if configured.is_empty() {
            let by_default = |one: &Found| HostLink {
                interface: one.name.clone(),
                network: Name::default_name(),
                cidrs: one.prefixes(),
                is_probed: is_probed(one),
            };
            // Interfaces without probes are kept, so that a tunnel's address isn't probed on an Ethernet with
            // a shorter prefix.
            found.iter().filter(|one| one.is_up).map(by_default).collect()
        } else {
            let named = |link: &LinkConfig| {
                let one = by_name(&link.interface)?;
                let cidrs = link.cidrs.clone().unwrap_or_else(|| one.prefixes());
                let (interface, network) = (one.name.clone(), link.network.clone());
                Some(HostLink { interface, network, cidrs, is_probed: is_probed(one) })
            };
            configured.iter().filter_map(named).collect()
        };
        let missing = configured.iter().filter(|link| by_name(&link.interface).is_none());
        Self {
            links,
            interfaces: found.iter().map(|one| (one.name.clone(), one.clone())).collect(),
            missing: missing.map(|link| link.interface.clone()).collect(),
        }
    }

    /// Links that the agent can probe, each with a prefix at least.
    pub fn probed(&self) -> impl Iterator<Item = &HostLink> {
        self.links.iter().filter(|link| link.is_probed && !link.cidrs.is_empty())
    }

    /// Configured interfaces that don't exist.
    #[must_use]
    pub fn missing(&self) -> &[InterfaceName] {
        &self.missing
    }

    /// Links for the heartbeat, sorted and each once, and the number of those beyond the limit.
    #[must_use]
    pub fn reported(&self) -> (Vec<Link>, usize) {
        let pairs =
            self.probed().flat_map(|link| link.cidrs.iter().map(|cidr| (link.network.clone(), *cidr)));
        let all: BTreeSet<Link> = pairs.map(|(network, cidr)| Link { network, cidr }).collect();
        let surplus = all.len().saturating_sub(LINKS_PER_NODE_MAX);
        (all.into_iter().take(LINKS_PER_NODE_MAX).collect(), surplus)
    }

    /// Interface and network for the probe of an ADD's address; `None` if no link can be probed.
    ///
    /// If the plugin specified an interface, that interface is used: containers are connected to it.
    /// Otherwise the longest prefix decides, unless links of several networks have it.
    #[must_use]
    pub fn of_add(&self, named: Option<&InterfaceName>, address: IpAddr) -> Option<(&str, Name)> {
        let Some(named) = named else {
            let link = self.covering(None, address)?;
            return Some((&link.interface, link.network.clone()));
        };
        let interface = &self.interfaces.get(named.as_str()).filter(|one| one.mac.is_some())?.name;
        let own = self.links.iter().filter(|link| link.interface == *interface);
        let own = own.max_by_key(|link| link.covers(address).map_or(0, |length| u32::from(length) + 1));
        Some((interface, own.map_or_else(Name::default_name, |link| link.network.clone())))
    }

    /// Interface on whose link an address of a network is; none if the agent can't probe it.
    #[must_use]
    pub fn of_job(&self, network: &Name, address: IpAddr) -> Option<&str> {
        self.covering(Some(network), address).map(|link| link.interface.as_str())
    }

    /// Returns true if this host has the address on one of its interfaces.
    #[must_use]
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.interfaces.values().any(|one| one.has_address(address))
    }

    /// Ethernet address of an interface that has the address. A probe on it gets no answer from the host
    /// itself.
    #[must_use]
    pub fn own(&self, interface: &str, address: IpAddr) -> Option<MacAddr> {
        self.interfaces.get(interface).filter(|one| one.has_address(address))?.mac
    }

    fn covering(&self, network: Option<&Name>, address: IpAddr) -> Option<&HostLink> {
        let of_network = |link: &&HostLink| network.is_none_or(|network| *network == link.network);
        let covering = self.links.iter().filter(of_network);
        let covering = covering.filter_map(|link| Some((link.covers(address)?, link)));
        let covering: Vec<(u8, &HostLink)> = covering.collect();
        let longest = covering.iter().map(|(length, _)| *length).max()?;
        let mut longest = covering.iter().filter(|(length, _)| *length == longest).map(|(_, link)| *link);
        let first = longest.clone().find(|link| link.is_probed)?;
        longest.all(|link| link.network == first.network).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, networks: &[&str]) -> Found {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Found { name: name.to_owned(), networks, is_up: true, mac: Some(MacAddr(2, 0, 0, 0, 0, 1)) }
    }

    fn configured(interface: &str, network: &str, cidrs: Option<&[&str]>) -> LinkConfig {
        let cidrs = cidrs.map(|cidrs| cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect());
        let (interface, network) = (interface.parse().unwrap(), network.parse().unwrap());
        LinkConfig { interface, network, cidrs }
    }

    fn reported(links: &Links) -> Vec<String> {
        links.reported().0.iter().map(|link| format!("{} {}", link.network, link.cidr)).collect()
    }

    #[test]
    fn without_configuration_each_ethernet_that_is_up_reports_its_prefixes() {
        let eth0 = ["10.1.0.5/24", "169.254.0.5/16", "10.9.9.9/32", "fe80::1/64", "2001:db8::5/64"];
        let all = [
            found("eth0", &eth0),
            found("eth1", &["10.1.0.6/24", "2001:db8:1::/128"]),
            Found { is_up: false, ..found("eth2", &["10.2.0.1/24"]) },
            Found { mac: None, ..found("wg0", &["10.1.0.128/25"]) },
        ];
        let links = Links::new(&[], &all);
        assert_eq!(reported(&links), ["default 10.1.0.0/24", "default 2001:db8::/64"]);
        let of = |address: &str| links.of_add(None, address.parse().unwrap()).map(|(name, _)| name);
        assert_eq!(of("10.1.0.7"), Some("eth0"));
        assert_eq!(of("10.1.0.200"), None, "it is on the tunnel");
        assert_eq!((of("10.2.0.7"), of("fe80::7")), (None, None));
        assert!(links.has_address("10.9.9.9".parse().unwrap()));
        let own = |interface| links.own(interface, "10.1.0.5".parse().unwrap()).is_some();
        assert_eq!((own("eth0"), own("eth1"), own("gone")), (true, false, false));
        assert!(!links.has_address("10.1.0.7".parse().unwrap()));
    }

    #[test]
    fn configured_links_are_the_only_ones() {
        let all = [found("eth0", &["10.0.0.5/8"]), found("eth1", &["10.1.0.5/24"]), found("br0", &[])];
        let config = [
            configured("eth1", "blue", None),
            configured("br0", "default", Some(&["10.1.0.0/24", "10.2.0.0/16"])),
            configured("eth7", "default", Some(&["10.7.0.0/16"])),
        ];
        let links = Links::new(&config, &all);
        assert_eq!(reported(&links), ["blue 10.1.0.0/24", "default 10.1.0.0/24", "default 10.2.0.0/16"]);
        assert_eq!(links.missing().iter().map(InterfaceName::as_str).collect::<Vec<_>>(), ["eth7"]);
        let address = "10.1.0.7".parse().unwrap();
        assert_eq!(links.of_add(None, address), None, "two networks have the prefix");
        let of = |network: &str| links.of_job(&network.parse().unwrap(), address);
        assert_eq!((of("blue"), of("default"), of("red")), (Some("eth1"), Some("br0"), None));
        assert_eq!(links.of_add(None, "10.3.0.7".parse().unwrap()), None);
        assert_eq!(links.of_add(None, "10.7.0.7".parse().unwrap()), None);
    }

    #[test]
    fn the_plugins_interface_precedes_prefixes() {
        let all =
            [found("eth0", &["10.1.0.5/24"]), found("br0", &[]), Found { mac: None, ..found("tun0", &[]) }];
        let address = "10.1.0.7".parse().unwrap();
        let of = |links: &Links, name: &str| {
            let name: InterfaceName = name.parse().unwrap();
            links.of_add(Some(&name), address).map(|(name, network)| format!("{name} {network}"))
        };
        let links = Links::new(&[], &all);
        assert_eq!(of(&links, "br0").as_deref(), Some("br0 default"));
        assert_eq!((of(&links, "tun0"), of(&links, "gone")), (None, None));
        let config = [
            configured("br0", "default", Some(&["10.2.0.0/24"])),
            configured("br0", "blue", Some(&["10.1.0.0/24"])),
        ];
        assert_eq!(of(&Links::new(&config, &all), "br0").as_deref(), Some("br0 blue"));
        assert_eq!(of(&Links::new(&config, &all), "eth0").as_deref(), Some("eth0 default"));
    }

    #[test]
    fn links_beyond_the_limit_are_counted() {
        let many: Vec<Found> = (0..LINKS_PER_NODE_MAX + 3)
            .map(|place| found(&format!("eth{place}"), &[&format!("10.{place}.0.1/24")]))
            .collect();
        let (links, surplus) = Links::new(&[], &many).reported();
        assert_eq!((links.len(), surplus), (LINKS_PER_NODE_MAX, 3));
    }
}
