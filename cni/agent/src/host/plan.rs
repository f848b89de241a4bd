//! Changes from the observed state of the kernel to the desired one. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::journal::Owned;
use super::kernel::{Change, HostAddress, HostRoute, Link, Observed};
use super::target::{Device, Target};

/// Part of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Links only: they exist and are up, so that addresses can be probed on them.
    Links,
    /// Links, settings, addresses and routes.
    All,
}

/// Returns the changes in their order.
///
/// The order is: links, their settings, obsolete routes, replaced addresses, new addresses, new routes, and
/// obsolete addresses and VLAN devices.
///
/// The links in `frozen` belong to another network manager, and are not changed.
#[must_use]
pub(super) fn plan(
    observed: &Observed,
    target: &Target,
    owned: &Owned,
    frozen: &BTreeSet<String>,
    scope: Scope,
) -> Vec<Change> {
    let mut parts = Parts::default();
    for (name, device) in target.devices.iter().filter(|(name, _)| !frozen.contains(*name)) {
        if device.vlan.as_ref().is_some_and(|(parent, _)| frozen.contains(parent)) {
            continue;
        }
        parts.links(observed, name, device);
        if scope == Scope::All {
            parts.settings(observed, name, device, owned, target.vlans_mtu(name));
            parts.addresses(observed, name, device, owned);
            parts.routes(observed, name, device);
        }
    }
    if scope == Scope::All {
        let is_gone = |link: &&Link| !target.devices.contains_key(&link.name) && !frozen.contains(&link.name);
        for link in observed.links.iter().filter(is_gone) {
            if owned.vlans.contains(&link.name) && link.vlan.is_some() && !is_used(observed, owned, link) {
                // The kernel removes its addresses and routes with the device.
                parts.removed.push(Change::RemoveVlan { device: link.name.clone() });
                continue;
            }
            let nothing = Device::default();
            parts.settings(observed, &link.name, &nothing, owned, None);
            parts.addresses(observed, &link.name, &nothing, owned);
            parts.routes(observed, &link.name, &nothing);
        }
    }
    // A VLAN device can't have a larger MTU than its parent.
    parts.settings.sort_by_key(|change| {
        target.devices.get(change.device()).is_some_and(|device| device.vlan.is_some())
    });
    let Parts { links, settings, former_routes, replaced, addresses, routes, removed } = parts;
    [links, settings, former_routes, replaced, addresses, routes, removed].concat()
}

/// Returns true if other programs have configured an address on a link, or another link over it.
#[must_use]
pub(super) fn is_used(observed: &Observed, owned: &Owned, link: &Link) -> bool {
    let is_link_local = |one: &HostAddress| match one.address.addr() {
        IpAddr::V6(address) => address.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    };
    let mut addresses = observed.addresses.iter().filter(|one| one.link == link.index);
    let is_parent = |one: &Link| {
        one.parent == Some(link.index) || one.vlan.is_some_and(|(parent, _)| parent == link.index)
    };
    link.is_port
        || observed.links.iter().any(is_parent)
        || addresses.any(|one| !is_own(observed, owned, &link.name, one) && !is_link_local(one))
}

/// Returns true if the agent has added an address.
#[must_use]
pub(super) fn is_own(observed: &Observed, owned: &Owned, link: &str, address: &HostAddress) -> bool {
    if observed.has_tags {
        address.is_tagged
    } else {
        owned.addresses.contains(&(link.to_owned(), address.address))
    }
}

#[derive(Debug, Default)]
struct Parts {
    links: Vec<Change>,
    settings: Vec<Change>,
    former_routes: Vec<Change>,
    replaced: Vec<Change>,
    addresses: Vec<Change>,
    routes: Vec<Change>,
    removed: Vec<Change>,
}

impl Parts {
    fn links(&mut self, observed: &Observed, name: &str, device: &Device) {
        let up = |name: &str| Change::SetUp { device: name.to_owned() };
        if let Some((parent, id)) = &device.vlan {
            // A VLAN device comes up only after its parent.
            if observed.named(parent).is_some_and(|link| !link.is_up) && !self.links.contains(&up(parent)) {
                self.links.push(up(parent));
            }
            if observed.named(name).is_none() {
                let (device, parent) = (name.to_owned(), parent.clone());
                self.links.push(Change::AddVlan { device, parent, id: *id });
            }
        }
        let is_up = observed.named(name).map_or(device.vlan.is_none(), |link| link.is_up);
        if !is_up && !self.links.contains(&up(name)) {
            self.links.push(up(name));
        }
    }

    fn settings(
        &mut self,
        observed: &Observed,
        name: &str,
        device: &Device,
        owned: &Owned,
        vlans_mtu: Option<u32>,
    ) {
        let present = observed.named(name).map(|link| link.mtu);
        let former = owned.mtus.get(name).copied();
        let raised = vlans_mtu.filter(|mtu| former.or(present).is_some_and(|other| other < *mtu));
        let wanted = device.mtu.or(raised).or(former);
        if let Some(mtu) = wanted.filter(|mtu| present != Some(*mtu)) {
            self.settings.push(Change::SetMtu { device: name.to_owned(), mtu });
        }
    }

    fn addresses(&mut self, observed: &Observed, name: &str, device: &Device, owned: &Owned) {
        let index = observed.named(name).map(|link| link.index);
        let present: Vec<&HostAddress> =
            observed.addresses.iter().filter(|one| Some(one.link) == index).collect();
        for one in present.iter().filter(|one| is_own(observed, owned, name, one)) {
            if device.addresses.contains(&one.address) {
                continue;
            }
            let is_other = |other: &&&HostAddress| {
                other.address != one.address && other.address.trunc() == one.address.trunc()
            };
            let added = device.addresses.iter().any(|other| other.trunc() == one.address.trunc());
            let has_others =
                one.address.addr().is_ipv4() && (added || present.iter().any(|other| is_other(&other)));
            let change = Change::RemoveAddress { device: name.to_owned(), address: one.address, has_others };
            // The same address with another prefix length can't be added while the former one exists.
            let is_replaced = device.addresses.iter().any(|wanted| wanted.addr() == one.address.addr());
            if is_replaced { self.replaced.push(change) } else { self.removed.push(change) }
        }
        for address in &device.addresses {
            let is_present = |one: &&HostAddress| {
                one.address == *address
                    || (one.address.addr() == address.addr() && !is_own(observed, owned, name, one))
            };
            if !present.iter().any(is_present) {
                self.addresses.push(Change::AddAddress { device: name.to_owned(), address: *address });
            }
        }
    }

    fn routes(&mut self, observed: &Observed, name: &str, device: &Device) {
        let index = observed.named(name).map(|link| link.index);
        let present: BTreeSet<&HostRoute> =
            observed.routes.iter().filter(|(link, _)| Some(*link) == index).map(|(_, route)| route).collect();
        let is_same = |one: &HostRoute, other: &HostRoute| {
            (one.destination, one.gateway, one.metric) == (other.destination, other.gateway, other.metric)
        };
        for route in &present {
            if !device.routes.iter().any(|wanted| is_same(wanted, route)) {
                let route = (*route).clone();
                self.former_routes.push(Change::RemoveRoute { device: name.to_owned(), route });
            }
        }
        for route in &device.routes {
            if !present.iter().any(|one| is_same(one, route)) {
                self.routes.push(Change::AddRoute { device: name.to_owned(), route: route.clone() });
            }
        }
    }
}

/// Addresses that a plan adds, by link.
pub(super) fn added(changes: &[Change]) -> impl Iterator<Item = (&str, IpNet)> {
    changes.iter().filter_map(|change| match change {
        Change::AddAddress { device, address } => Some((device.as_str(), *address)),
        _ => None,
    })
}

/// Returns true if a link has an address, of any origin.
#[must_use]
pub(super) fn has_address(observed: &Observed, name: &str, address: IpAddr) -> bool {
    let index = observed.named(name).map(|link| link.index);
    observed.addresses.iter().any(|one| Some(one.link) == index && one.address.addr() == address)
}
