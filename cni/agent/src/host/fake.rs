//! Kernel of the tests, with links, and with addresses and routes of the agent and of other programs.

use std::sync::{Arc, Mutex, MutexGuard};

use ipam_api::mac::MacAddress;
use ipam_api::resource::Interface;
use ipnet::IpNet;
use tokio::sync::Notify;

use super::kernel::{Change, HostAddress, HostRoute, Kernel, KernelError, Link, Observed};

/// A link with an index, a name and the last octet of its Ethernet address.
pub(super) fn link(index: u32, name: &str, mac: u8) -> Link {
    Link {
        index,
        name: name.to_owned(),
        mac: Some(MacAddress::new([2, 0, 0, 0, 0, mac])),
        permanent_mac: None,
        mtu: 1500,
        is_up: true,
        has_carrier: true,
        is_loopback: false,
        vlan: None,
        parent: None,
        is_port: false,
    }
}

/// State of the kernel. It outlives the agent.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) observed: Observed,
    /// Foreign routes, which the agent doesn't see.
    pub(super) foreign: Vec<(u32, HostRoute)>,
    /// Changes so far.
    pub(super) changes: Vec<String>,
    /// Part of the changes that are not permitted; empty for none.
    pub(super) refused: String,
    /// Address that others add just before the next change.
    pub(super) appears: Option<HostAddress>,
    /// Points before and after changes until the agent is killed; 0 for none.
    pub(super) kill_at: u32,
}

/// Kernel of the tests.
#[derive(Debug, Clone, Default)]
pub(super) struct FakeKernel {
    state: Arc<Mutex<State>>,
    /// Notified when the agent is killed.
    pub(super) killed: Arc<Notify>,
}

impl FakeKernel {
    pub(super) fn new(links: Vec<Link>, has_tags: bool) -> Self {
        let kernel = Self::default();
        kernel.state().observed = Observed { links, has_tags, ..Observed::default() };
        kernel
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds an address that is not the agent's.
    pub(super) fn foreign(&self, link: u32, address: &str) {
        self.state().observed.addresses.push(HostAddress {
            link,
            address: address.parse().unwrap(),
            is_tagged: false,
            is_tentative: false,
            is_duplicate: false,
        });
    }

    /// Addresses and routes of all links, marked if they are the agent's.
    pub(super) fn shown(&self) -> Vec<String> {
        let state = self.state();
        let name = |index: u32| state.observed.link(index).map(|link| link.name.clone()).unwrap();
        let mut shown: Vec<String> =
            state.observed.links.iter().map(|link| format!("{} mtu {}", link.name, link.mtu)).collect();
        shown
            .extend(state.observed.addresses.iter().map(|one| format!("{} {}", name(one.link), one.address)));
        shown.extend(state.observed.routes.iter().map(|(link, route)| format!("{} {route}", name(*link))));
        shown.extend(state.foreign.iter().map(|(link, route)| format!("{} foreign {route}", name(*link))));
        shown.sort();
        shown
    }

    /// Never returns if the agent is killed at this point.
    async fn point(&self) {
        let is_killed = {
            let mut state = self.state();
            let is_last = state.kill_at == 1;
            state.kill_at = state.kill_at.saturating_sub(1);
            is_last
        };
        if is_killed {
            self.killed.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

impl Kernel for FakeKernel {
    async fn observe(&self) -> Result<Observed, KernelError> {
        Ok(self.state().observed.clone())
    }

    async fn change(&self, change: &Change) -> Result<(), KernelError> {
        self.point().await;
        let result = self.state().make(change);
        self.point().await;
        result
    }
}

impl State {
    fn make(&mut self, change: &Change) -> Result<(), KernelError> {
        self.changes.push(change.to_string());
        self.observed.addresses.extend(self.appears.take());
        if !self.refused.is_empty() && change.to_string().contains(&self.refused) {
            return Err(KernelError::NotPermitted);
        }
        let index = |state: &Self, name: &str| {
            state.observed.named(name).map(|link| link.index).ok_or(KernelError::Missing)
        };
        match change {
            Change::AddVlan { device, parent, id } => {
                let parent = index(self, parent)?;
                if self.observed.named(device).is_some() {
                    return Err(KernelError::Exists);
                }
                let number = self.observed.links.iter().map(|link| link.index).max().unwrap_or_default() + 1;
                let vlan = Some((parent, *id));
                self.observed.links.push(Link { is_up: false, vlan, ..link(number, device, 1) });
            }
            Change::RemoveVlan { device } => {
                let index = index(self, device)?;
                self.observed.links.retain(|link| link.index != index);
                self.observed.addresses.retain(|one| one.link != index);
                self.observed.routes.retain(|(link, _)| *link != index);
            }
            Change::SetUp { device } => {
                let index = index(self, device)?;
                self.observed.links.iter_mut().find(|link| link.index == index).unwrap().is_up = true;
            }
            Change::SetMtu { device, mtu } => {
                let index = index(self, device)?;
                let vlan = self.observed.link(index).unwrap().vlan;
                if vlan.is_some_and(|(parent, _)| self.observed.link(parent).unwrap().mtu < *mtu) {
                    return Err(KernelError::Other("out of range".to_owned()));
                }
                self.observed.links.iter_mut().find(|link| link.index == index).unwrap().mtu = *mtu;
                let of = |link: u32, other: &Link| {
                    other.index == link || other.vlan.is_some_and(|(parent, _)| parent == link)
                };
                for link in self.observed.links.iter_mut().filter(|link| of(index, link)) {
                    link.mtu = link.mtu.min(*mtu);
                }
                let links = &self.observed.links;
                self.observed.addresses.retain(|one| {
                    *mtu >= 1280
                        || one.address.addr().is_ipv4()
                        || !links.iter().any(|link| link.index == one.link && of(index, link))
                });
            }
            Change::AddAddress { device, address } => {
                let link = index(self, device)?;
                let is_same = |one: &HostAddress| one.link == link && one.address.addr() == address.addr();
                if self.observed.addresses.iter().any(is_same) {
                    return Err(KernelError::Exists);
                }
                let is_tagged = self.observed.has_tags;
                let (is_tentative, is_duplicate) = (false, false);
                let address = *address;
                self.observed.addresses.push(HostAddress {
                    link,
                    address,
                    is_tagged,
                    is_tentative,
                    is_duplicate,
                });
            }
            Change::RemoveAddress { device, address, has_others } => {
                self.remove(device, *address, *has_others)?
            }
            Change::AddRoute { device, route } => {
                let index = index(self, device)?;
                let is_same = |(_, one): &(u32, HostRoute)| {
                    (one.destination, one.metric) == (route.destination, route.metric)
                };
                if self.observed.routes.iter().chain(&self.foreign).any(is_same) {
                    return Err(KernelError::Exists);
                }
                self.observed.routes.push((index, route.clone()));
            }
            Change::RemoveRoute { device, route } => {
                let index = index(self, device)?;
                let before = self.observed.routes.len();
                self.observed.routes.retain(|one| *one != (index, route.clone()));
                if self.observed.routes.len() == before {
                    return Err(KernelError::Missing);
                }
            }
        }
        Ok(())
    }

    /// Removes an address. The first address of an IPv4 prefix takes the others with it, unless `has_others`
    /// is true.
    fn remove(&mut self, device: &str, address: IpNet, has_others: bool) -> Result<(), KernelError> {
        let link = self.observed.named(device).map(|link| link.index).ok_or(KernelError::Missing)?;
        let of_prefix = |one: &HostAddress| {
            one.link == link && one.address.trunc() == address.trunc() && address.addr().is_ipv4()
        };
        let first = self.observed.addresses.iter().find(|one| of_prefix(one)).map(|one| one.address);
        let before = self.observed.addresses.len();
        let takes_all = first == Some(address) && !has_others;
        self.observed
            .addresses
            .retain(|one| !(one.link == link && one.address == address || takes_all && of_prefix(one)));
        if self.observed.addresses.len() == before { Err(KernelError::Missing) } else { Ok(()) }
    }
}

/// Interface without addresses.
pub(super) fn interface(name: &str) -> Interface {
    Interface {
        name: name.parse().unwrap(),
        attachment: None,
        also_attached: Vec::new(),
        kept: false,
        preallocated: false,
        addresses: Vec::new(),
    }
}
