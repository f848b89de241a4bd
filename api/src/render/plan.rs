//! Model between addresses and files: devices with their addresses, routes and name servers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::check::{checked_mac, checked_name, checked_option, checked_search};
use super::file::RenderError;
use super::vlan::{DEFAULT_MTU, Placement, placement};
use crate::Family;
use crate::limits::MTU_MIN_V6;
use crate::mac::MacAddress;
use crate::resource::{Dns, GivenAddress, Interface};

/// Metric of the first of several routes with the same destination.
const ROUTE_METRIC_FIRST: u32 = 100;

/// Configuration of a host, the same for all formats.
#[derive(Debug)]
pub(super) struct Plan {
    /// Devices; a parent precedes its VLAN devices.
    pub(super) devices: Vec<Device>,
}

/// Network device with its configuration.
#[derive(Debug)]
pub(super) struct Device {
    /// Name of the device.
    pub(super) name: String,
    /// MAC address by which the device is found.
    pub(super) mac: Option<MacAddress>,
    /// Parent and id, for a VLAN device.
    pub(super) vlan: Option<(String, u16)>,
    /// The largest packet.
    pub(super) mtu: Option<u32>,
    /// Addresses in the order of the endpoint, each once.
    pub(super) addresses: Vec<IpNet>,
    /// Routes, each once.
    pub(super) routes: Vec<Hop>,
    /// Name resolution; `domain` is the first entry of `search`.
    pub(super) dns: Dns,
}

/// Route over a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) destination: IpNet,
    pub(super) gateway: IpAddr,
    /// True if no address of the device has the gateway in its prefix.
    pub(super) on_link: bool,
    /// Metric, if several routes have the destination.
    pub(super) metric: Option<u32>,
}

impl Plan {
    /// Assigns all addresses to devices.
    pub(super) fn of(interfaces: &[Interface]) -> Result<Self, RenderError> {
        let mut plan = Self { devices: Vec::new() };
        for interface in interfaces.iter().filter(|interface| !interface.addresses.is_empty()) {
            let name = checked_name(interface.name.as_str())?;
            for given in &interface.addresses {
                plan.place(name, given)?;
            }
        }
        if plan.devices.is_empty() {
            return Err(RenderError("the endpoint has no addresses to render".to_owned()));
        }
        plan.settle_mtus()?;
        plan.settle_routes();
        Ok(plan)
    }

    /// VLAN devices of a parent.
    pub(super) fn vlans_of<'a>(&'a self, parent: &'a str) -> impl Iterator<Item = &'a Device> {
        let of_parent = move |device: &&Device| device.vlan.as_ref().is_some_and(|(name, _)| name == parent);
        self.devices.iter().filter(of_parent)
    }

    fn place(&mut self, interface: &str, given: &GivenAddress) -> Result<(), RenderError> {
        let mac = given.mac.as_deref().map(checked_mac).transpose()?;
        let at = placement(interface, given.vlan.unwrap_or_default())?;
        match &at {
            Placement::Direct(name) => self.device(name, None)?.found_by(mac)?,
            Placement::Vlan { parent, name, id } => {
                self.device(parent, None)?.found_by(mac)?;
                self.device(name, Some((parent.clone(), *id)))?;
            }
        }
        self.device_named(at.name()).map_or(Ok(()), |device| device.add(given))
    }

    /// Returns the device with this name, and creates it if it is missing.
    fn device(&mut self, name: &str, vlan: Option<(String, u16)>) -> Result<&mut Device, RenderError> {
        let index = match self.devices.iter().position(|device| device.name == name) {
            Some(index) => index,
            None => {
                self.devices.push(Device::new(name, vlan.clone()));
                self.devices.len().saturating_sub(1)
            }
        };
        let found = self.devices.get_mut(index);
        found.filter(|device| vlan.is_none() || device.vlan == vlan).ok_or_else(|| {
            RenderError(format!("two devices have the name {name}; rename an interface of the endpoint"))
        })
    }

    fn device_named(&mut self, name: &str) -> Option<&mut Device> {
        self.devices.iter_mut().find(|device| device.name == name)
    }

    /// Checks MTUs against the IPv6 minimum and those of VLAN devices, and sets missing MTUs of parents.
    fn settle_mtus(&mut self) -> Result<(), RenderError> {
        let mut needed: BTreeMap<String, u32> = BTreeMap::new();
        for device in &self.devices {
            let has_v6 = device.has(Family::V6);
            if let Some(mtu) = device.mtu.filter(|mtu| has_v6 && *mtu < MTU_MIN_V6) {
                return Err(RenderError(format!(
                    "{} has the MTU {mtu} and IPv6 addresses, and IPv6 needs {MTU_MIN_V6}; raise the MTU of \
                     the subnet",
                    device.name
                )));
            }
            if let (Some((parent, _)), Some(mtu)) = (&device.vlan, device.mtu) {
                let most = needed.entry(parent.clone()).or_default();
                *most = (*most).max(mtu);
            }
        }
        for device in &mut self.devices {
            let Some(needed) = needed.get(&device.name).copied() else { continue };
            match device.mtu {
                Some(mtu) if mtu < needed => {
                    return Err(RenderError(format!(
                        "{} has the MTU {mtu} and a VLAN device with {needed}; raise the MTU of its subnet",
                        device.name
                    )));
                }
                Some(_) => {}
                None if needed > DEFAULT_MTU => device.mtu = Some(needed),
                None => {}
            }
        }
        Ok(())
    }

    /// Marks gateways outside the prefixes, and assigns metrics to routes with the same destination.
    fn settle_routes(&mut self) {
        let mut number: BTreeMap<IpNet, u32> = BTreeMap::new();
        for device in &mut self.devices {
            let own: Vec<IpAddr> = device.addresses.iter().map(IpNet::addr).collect();
            // A host is no gateway of itself.
            device.routes.retain(|route| !own.contains(&route.gateway));
            for route in &mut device.routes {
                route.on_link = !device.addresses.iter().any(|address| address.contains(&route.gateway));
                *number.entry(route.destination).or_default() += 1;
            }
        }
        number.retain(|_, routes| *routes > 1);
        let mut given: BTreeMap<IpNet, u32> = BTreeMap::new();
        for route in self.devices.iter_mut().flat_map(|device| &mut device.routes) {
            if number.contains_key(&route.destination) {
                let next = given.entry(route.destination).or_insert(ROUTE_METRIC_FIRST);
                route.metric = Some(*next);
                *next = next.saturating_add(1);
            }
        }
    }
}

impl Device {
    fn new(name: &str, vlan: Option<(String, u16)>) -> Self {
        Self {
            name: name.to_owned(),
            mac: None,
            vlan,
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            dns: Dns::default(),
        }
    }

    /// True if the device has addresses of this family.
    pub(super) fn has(&self, family: Family) -> bool {
        self.addresses_of(family).next().is_some()
    }

    /// Addresses of this family.
    pub(super) fn addresses_of(&self, family: Family) -> impl Iterator<Item = &IpNet> {
        self.addresses.iter().filter(move |address| Family::of(address.addr()) == family)
    }

    /// Routes of this family.
    pub(super) fn routes_of(&self, family: Family) -> impl Iterator<Item = &Hop> {
        self.routes.iter().filter(move |route| Family::of(route.gateway) == family)
    }

    fn found_by(&mut self, mac: Option<MacAddress>) -> Result<(), RenderError> {
        match (self.mac, mac) {
            (Some(known), Some(other)) if known != other => {
                Err(RenderError(format!("{} has two MAC addresses: {known} and {other}", self.name)))
            }
            (None, Some(mac)) => {
                self.mac = Some(mac);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, given: &GivenAddress) -> Result<(), RenderError> {
        push_new(&mut self.addresses, given.address);
        // If several subnets share one link, the smallest MTU suits all of them.
        self.mtu = self.mtu.into_iter().chain(given.mtu).min();
        let family = Family::of(given.address.addr());
        let mut routes: Vec<(IpNet, IpAddr)> =
            given.routes.iter().map(|route| (route.destination.trunc(), route.gateway)).collect();
        let default = default_route(family);
        let router = given.gateway.filter(|_| !given.clean_gateway);
        if let Some(router) = router.filter(|_| !routes.iter().any(|(to, _)| *to == default)) {
            routes.insert(0, (default, router));
        }
        for (destination, gateway) in routes {
            if Family::of(destination.addr()) != Family::of(gateway) {
                return Err(RenderError(format!(
                    "the route to {destination} has a gateway of the other family"
                )));
            }
            push_new(&mut self.routes, Hop { destination, gateway, on_link: false, metric: None });
        }
        self.resolve(&given.dns)
    }

    fn resolve(&mut self, dns: &Dns) -> Result<(), RenderError> {
        dns.nameservers.iter().for_each(|server| push_new(&mut self.dns.nameservers, *server));
        for domain in dns.domain.iter().chain(&dns.search) {
            push_new(&mut self.dns.search, checked_search(domain)?);
        }
        for option in &dns.options {
            push_new(&mut self.dns.options, checked_option(option)?);
        }
        Ok(())
    }
}

/// Destination of the default route.
pub(super) fn default_route(family: Family) -> IpNet {
    match family {
        Family::V4 => Ipv4Net::default().into(),
        Family::V6 => Ipv6Net::default().into(),
    }
}

/// Appends an item, unless the list has it.
fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
