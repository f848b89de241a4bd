//! Configuration of the kernel that follows from the addresses of a host. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipam_api::limits::{HOST_ROUTE_METRIC, INTERFACES_MAX, MTU_MIN_V4, MTU_MIN_V6};
use ipam_api::render::vlan_device;
use ipam_api::resource::{GivenAddress, Interface};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::binding::{Bindings, Bound};
use super::kernel::{HostRoute, Observed};

/// VLAN ids that a device can have (IEEE 802.1Q).
const VLANS: std::ops::RangeInclusive<u16> = 1..=4094;

/// Desired configuration of one link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Device {
    /// Parent and 802.1Q id, if the agent creates the device where it is missing.
    pub(super) vlan: Option<(String, u16)>,
    /// The largest packet.
    pub(super) mtu: Option<u32>,
    /// Addresses with their prefixes.
    pub(super) addresses: BTreeSet<IpNet>,
    /// Routes by way of gateways.
    pub(super) routes: BTreeSet<HostRoute>,
}

/// Desired configuration of all links, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Devices, by name.
    pub(super) devices: BTreeMap<String, Device>,
    /// Addresses that can't be configured, with the reason.
    pub(super) problems: Vec<String>,
}

impl Target {
    /// Computes the configuration for these addresses. Interfaces without a link and the addresses in
    /// `withheld` are left out. The links of `withheld` addresses stay, for the next probe.
    #[must_use]
    pub(super) fn new(
        interfaces: &[Interface],
        bindings: &Bindings,
        observed: &Observed,
        withheld: &BTreeSet<IpAddr>,
    ) -> Self {
        let mut target = Self::default();
        for interface in interfaces {
            let Some(bound) = bindings.named(&interface.name) else { continue };
            target.devices.entry(bound.device.clone()).or_default();
            let vlans: BTreeSet<u16> = interface
                .addresses
                .iter()
                .filter_map(|given| vlan(bound, observed, given).ok().flatten())
                .collect();
            for given in &interface.addresses {
                let is_withheld = withheld.contains(&given.address.addr());
                if let Err(problem) = target.add(bound, observed, given, &vlans, is_withheld) {
                    target.problems.push(problem);
                }
            }
        }
        target.raise_parents();
        target.refuse_small_mtus(observed);
        target
    }

    /// Largest MTU of the VLAN devices over a link.
    #[must_use]
    pub(super) fn vlans_mtu(&self, parent: &str) -> Option<u32> {
        let is_over = |device: &&Device| device.vlan.as_ref().is_some_and(|(name, _)| name == parent);
        self.devices.values().filter(is_over).filter_map(|device| device.mtu).max()
    }

    /// Raises the MTU of links to that of their VLAN devices, which can't have a larger one.
    fn raise_parents(&mut self) {
        let parents: Vec<(String, u32)> =
            self.devices.keys().filter_map(|name| Some((name.clone(), self.vlans_mtu(name)?))).collect();
        for (name, largest) in parents {
            if let Some(mtu) = self.devices.get_mut(&name).and_then(|device| device.mtu.as_mut()) {
                *mtu = (*mtu).max(largest);
            }
        }
    }

    /// Keeps the MTU of links whose IPv6 addresses the kernel would remove with a smaller one.
    fn refuse_small_mtus(&mut self, observed: &Observed) {
        let Self { devices, problems } = self;
        let with_ipv6: BTreeSet<String> = devices
            .iter()
            .filter(|(_, device)| device.addresses.iter().any(|one| one.addr().is_ipv6()))
            .flat_map(|(name, device)| [Some(name.clone()), device.vlan.clone().map(|(parent, _)| parent)])
            .flatten()
            .collect();
        for (name, device) in devices {
            let Some(mtu) = device.mtu.filter(|mtu| *mtu < MTU_MIN_V6) else { continue };
            let index = observed.named(name).map(|link| link.index);
            // A VLAN device gets the MTU of its parent, if that is smaller.
            let is_concerned = |link: u32| {
                Some(link) == index
                    || observed
                        .link(link)
                        .and_then(|link| link.vlan)
                        .is_some_and(|(own, _)| Some(own) == index)
            };
            let mut present = observed.addresses.iter().filter(|one| is_concerned(one.link));
            if with_ipv6.contains(name) || present.any(|one| one.address.addr().is_ipv6()) {
                device.mtu = None;
                problems.push(format!(
                    "the MTU of {name} is not set to {mtu}: IPv6 needs {MTU_MIN_V6}, and the kernel would \
                     remove its IPv6 addresses"
                ));
            }
        }
    }

    fn add(
        &mut self,
        bound: &Bound,
        observed: &Observed,
        given: &GivenAddress,
        vlans: &BTreeSet<u16>,
        is_withheld: bool,
    ) -> Result<(), String> {
        let vlan = vlan(bound, observed, given)?;
        let name = device(bound, vlan);
        let other = self.devices.get(&name).and_then(|device| device.vlan.as_ref());
        if let Some((parent, _)) = other.filter(|(parent, _)| *parent != bound.device) {
            return Err(format!("{}: {name} is a VLAN of {parent}, not of {}", given.address, bound.device));
        }
        if let Some(id) = vlan
            && observed.named(&name).is_some_and(|link| link.vlan != Some((bound.index, id)))
        {
            return Err(format!("{}: {name} is not VLAN {id} of {}", given.address, bound.device));
        }
        let device = self.devices.entry(name).or_default();
        device.vlan = vlan.map(|id| (bound.device.clone(), id));
        if is_withheld {
            return Ok(());
        }
        if let Some(mtu) = given.mtu.filter(|mtu| *mtu >= MTU_MIN_V4) {
            // Both families share the link.
            device.mtu = Some(device.mtu.map_or(mtu, |other| other.min(mtu)));
        }
        device.addresses.insert(given.address);
        device.routes.extend(routes(given, metric(bound, vlan, vlans)));
        Ok(())
    }
}

/// Name of the link that gets an address.
#[must_use]
pub(super) fn device_of(bound: &Bound, observed: &Observed, given: &GivenAddress) -> String {
    device(bound, vlan(bound, observed, given).ok().flatten())
}

fn device(bound: &Bound, vlan: Option<u16>) -> String {
    vlan.map_or_else(|| bound.device.clone(), |id| vlan_device(&bound.device, id))
}

/// Metric of routes: the interface's own routes precede those of its VLANs. The kernel refuses two routes
/// with the same metric and destination.
fn metric(bound: &Bound, vlan: Option<u16>, vlans: &BTreeSet<u16>) -> u32 {
    let step = u32::try_from(INTERFACES_MAX).unwrap_or(u32::MAX);
    let rank = vlan.map_or(0, |id| 1 + vlans.range(..id).count());
    let rank = u32::try_from(rank).unwrap_or(u32::MAX);
    HOST_ROUTE_METRIC.saturating_add(bound.place).saturating_add(rank.saturating_mul(step))
}

/// VLAN device that an address needs; `None` if the address belongs on the interface itself.
fn vlan(bound: &Bound, observed: &Observed, given: &GivenAddress) -> Result<Option<u16>, String> {
    let Some(id) = given.vlan.filter(|id| *id != 0) else { return Ok(None) };
    if !VLANS.contains(&id) {
        return Err(format!("{}: {id} is no VLAN", given.address));
    }
    let is_already =
        observed.link(bound.index).is_some_and(|link| link.vlan.is_some_and(|(_, own)| own == id));
    Ok((!is_already).then_some(id))
}

/// Routes of an address. A default route among them replaces that of the gateway.
fn routes(given: &GivenAddress, metric: u32) -> Vec<HostRoute> {
    let is_ipv4 = given.address.addr().is_ipv4();
    let everything = if is_ipv4 { IpNet::V4(Ipv4Net::default()) } else { IpNet::V6(Ipv6Net::default()) };
    let by_way = |destination: IpNet, gateway: IpAddr| HostRoute {
        destination,
        gateway,
        metric,
        on_link: !given.address.contains(&gateway) && !is_link_local(gateway),
    };
    let fits = |route: &&ipam_api::resource::Route| {
        route.destination.addr().is_ipv4() == is_ipv4 && route.gateway.is_ipv4() == is_ipv4
    };
    let further = given.routes.iter().filter(fits);
    let mut routes: Vec<HostRoute> =
        further.map(|route| by_way(route.destination.trunc(), route.gateway)).collect();
    let has_default = routes.iter().any(|route| route.destination == everything);
    if let Some(gateway) = given.gateway.filter(|_| !given.clean_gateway && !has_default)
        && gateway.is_ipv4() == is_ipv4
    {
        routes.push(by_way(everything, gateway));
    }
    // A host that is a gateway itself has no route by way of its own address.
    routes.retain(|route| route.gateway != given.address.addr());
    routes
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fake::link;
    use super::*;

    fn target(addresses: &Value) -> Target {
        let observed = Observed { links: vec![link(2, "eth1", 1)], ..Observed::default() };
        let bound = Bound {
            name: "eth1".parse().unwrap(),
            device: "eth1".to_owned(),
            index: 2,
            mac: None,
            section: 0,
            place: 1,
        };
        let bindings = Bindings { bound: vec![bound], warnings: Vec::new() };
        let interfaces: Vec<Interface> = serde_json::from_value(json!([
            {"name": "eth1", "addresses": addresses},
            {"name": "eth9", "addresses": [given("192.0.2.1/24", json!({}))]},
        ]))
        .unwrap();
        Target::new(&interfaces, &bindings, &observed, &BTreeSet::new())
    }

    fn given(address: &str, more: Value) -> Value {
        let mut given = json!({"address": address, "pool": "p", "allocation": 1, "checked": false});
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        given
    }

    fn routes(target: &Target) -> Vec<String> {
        target.devices.values().flat_map(|device| &device.routes).map(ToString::to_string).collect()
    }

    #[test]
    fn the_gateway_gets_the_default_route_unless_another_route_has_it() {
        let route =
            |destination: &str, gateway: &str| json!({"destination": destination, "gateway": gateway});
        for (more, expected) in [
            (json!({"gateway": "10.0.0.1"}), vec!["0.0.0.0/0 via 10.0.0.1 metric 513"]),
            (json!({"gateway": "10.0.0.1", "clean_gateway": true}), vec![]),
            (json!({"gateway": "10.0.0.7"}), vec![]),
            (json!({"gateway": "192.0.2.1"}), vec!["0.0.0.0/0 via 192.0.2.1 metric 513 onlink"]),
            (
                json!({"gateway": "10.0.0.1", "routes": [route("0.0.0.0/0", "10.0.0.2")]}),
                vec!["0.0.0.0/0 via 10.0.0.2 metric 513"],
            ),
            (
                json!({"gateway": "10.0.0.1", "routes": [route("10.9.0.0/16", "10.0.0.2")]}),
                vec!["0.0.0.0/0 via 10.0.0.1 metric 513", "10.9.0.0/16 via 10.0.0.2 metric 513"],
            ),
        ] {
            assert_eq!(routes(&target(&json!([given("10.0.0.7/24", more.clone())]))), expected, "{more}");
        }
        let six = target(&json!([given("2001:db8::7/64", json!({"gateway": "fe80::1"}))]));
        assert_eq!(routes(&six), ["::/0 via fe80::1 metric 513"]);
    }

    #[test]
    fn an_mtu_that_ipv6_does_not_allow_is_left_alone() {
        let four = given("10.0.0.7/24", json!({"mtu": 576}));
        let six = given("2001:db8::7/64", json!({}));
        let alone = target(&json!([four]));
        assert_eq!((alone.devices["eth1"].mtu, alone.problems.len()), (Some(576), 0));
        let both = target(&json!([four, six]));
        assert_eq!((both.devices["eth1"].mtu, both.problems.len()), (None, 1));
        // A VLAN device would get the MTU of its parent.
        let vlan = target(&json!([four, given("2001:db8::7/64", json!({"vlan": 100}))]));
        assert_eq!((vlan.devices["eth1"].mtu, vlan.problems.len()), (None, 1));
        let raised = target(&json!([four, given("10.1.0.7/24", json!({"vlan": 100, "mtu": 1400}))]));
        assert_eq!((raised.devices["eth1"].mtu, raised.devices["eth1.100"].mtu), (Some(1400), Some(1400)));
    }

    #[test]
    fn each_vlan_has_routes_of_its_own_metric() {
        let more = |vlan: u16| json!({"vlan": vlan, "gateway": "10.0.0.1"});
        let target = target(&json!([
            given("10.0.0.7/24", more(0)),
            given("10.0.0.8/24", more(200)),
            given("10.0.0.9/24", more(100)),
        ]));
        let metric = |device: &str| target.devices[device].routes.first().unwrap().metric;
        assert_eq!(["eth1", "eth1.100", "eth1.200"].map(metric), [513, 529, 545]);
    }

    #[test]
    fn vlan_devices_of_long_parents_have_the_names_of_the_renderers() {
        let parents = ["enp129s0f0np0", "enp129s0f1np1"];
        let bound = |(name, index): (&str, u32)| Bound {
            name: name.parse().unwrap(),
            device: name.to_owned(),
            index,
            mac: None,
            section: 0,
            place: index,
        };
        let bindings =
            Bindings { bound: parents.into_iter().zip(2..).map(bound).collect(), warnings: Vec::new() };
        let observed =
            Observed { links: vec![link(2, parents[0], 1), link(3, parents[1], 2)], ..Observed::default() };
        let one = |name: &str, address: &str| {
            let addresses = [given(address, json!({"vlan": 110}))];
            json!({"name": name, "addresses": addresses})
        };
        let interfaces: Vec<Interface> =
            serde_json::from_value(json!([one(parents[0], "10.0.0.7/24"), one(parents[1], "10.0.0.8/24"),]))
                .unwrap();
        let target = Target::new(&interfaces, &bindings, &observed, &BTreeSet::new());
        let vlan = &target.devices["vlan110"];
        assert_eq!((&vlan.vlan, vlan.addresses.len()), (&Some((parents[0].to_owned(), 110)), 1));
        // Both parents can't have the name.
        assert_eq!(
            target.problems,
            ["10.0.0.8/24: vlan110 is a VLAN of enp129s0f0np0, not of enp129s0f1np1"]
        );
    }

    #[test]
    fn addresses_of_a_vlan_get_a_device_of_their_own() {
        let target = target(&json!([
            given("10.0.0.7/24", json!({"vlan": 100, "mtu": 1400})),
            given("2001:db8::7/64", json!({"vlan": 100, "mtu": 1450})),
            given("10.1.0.7/24", json!({"vlan": 0})),
            given("10.2.0.7/24", json!({"vlan": 4095})),
        ]));
        let names: Vec<&str> = target.devices.keys().map(String::as_str).collect();
        assert_eq!(names, ["eth1", "eth1.100"]);
        let vlan = &target.devices["eth1.100"];
        assert_eq!((vlan.vlan.clone(), vlan.mtu), (Some(("eth1".to_owned(), 100)), Some(1400)));
        assert_eq!((vlan.addresses.len(), target.devices["eth1"].addresses.len()), (2, 1));
        assert_eq!(target.problems.len(), 1);
    }
}
