//! Addresses and routes of the kernel, compared with those that an endpoint holds.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipam_api::resource::Interface;
use ipnet::IpNet;
use serde_json::Value;

use super::room::Room;

/// Configuration of interfaces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// Device and address.
    pub(super) addresses: BTreeSet<(String, IpNet)>,
    /// Device, destination and gateway.
    pub(super) routes: BTreeSet<(String, IpNet, IpAddr)>,
    /// Device and MTU, of those that have one of the endpoint.
    pub(super) mtus: BTreeSet<(String, u32)>,
}

/// Configuration that the interfaces of an endpoint should have.
pub(super) fn expected(interfaces: &[Interface]) -> Observed {
    let mut all = Observed::default();
    for interface in interfaces {
        for given in &interface.addresses {
            let vlan = given.vlan.map(|vlan| format!(".{vlan}")).unwrap_or_default();
            let device = format!("{}{vlan}", interface.name);
            all.addresses.insert((device.clone(), given.address));
            let default = if given.address.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
            if let Some(gateway) = given.gateway.filter(|_| !given.clean_gateway) {
                all.routes.insert((device.clone(), default.parse().unwrap(), gateway));
            }
            let routes = given.routes.iter().map(|route| (device.clone(), route.destination, route.gateway));
            all.routes.extend(routes);
        }
        let least = interface.addresses.iter().filter_map(|given| given.mtu).min();
        all.mtus.extend(least.map(|mtu| (interface.name.to_string(), mtu)));
    }
    all
}

/// Configuration that the kernel has for the devices `eth*`.
pub(super) fn observed(room: &Room) -> Observed {
    let read = |words: &[&str]| -> Vec<Value> { serde_json::from_str(&room.run(words)).unwrap() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Observed::default();
    for link in read(&["ip", "-j", "address"]) {
        let name = text(&link["ifname"]);
        if !name.starts_with("eth") {
            continue;
        }
        let addresses = link["addr_info"].as_array().unwrap().iter();
        let chosen = addresses.filter(|address| address["scope"] == "global" && address["tentative"] != true);
        all.addresses.extend(chosen.map(|address| {
            let net = format!("{}/{}", text(&address["local"]), address["prefixlen"]);
            (name.clone(), net.parse().unwrap())
        }));
        let mtu = link["mtu"].as_u64().unwrap();
        if mtu != 1500 {
            all.mtus.insert((name, mtu.try_into().unwrap()));
        }
    }
    for (version, default) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
        for route in read(&["ip", "-j", version, "route"]).iter().filter(|route| route["gateway"].is_string())
        {
            let destination = match text(&route["dst"]).as_str() {
                "default" => default.to_owned(),
                net if net.contains('/') => net.to_owned(),
                host => format!("{host}/{}", if version == "-4" { 32 } else { 128 }),
            };
            all.routes.insert((
                text(&route["dev"]),
                destination.parse().unwrap(),
                text(&route["gateway"]).parse().unwrap(),
            ));
        }
    }
    all
}

/// Compares both, as often as a caller polls.
pub(super) fn is_applied(room: &Room, interfaces: &[Interface]) -> Result<(), String> {
    let (seen, wanted) = (observed(room), expected(interfaces));
    if seen == wanted { Ok(()) } else { Err(format!("{seen:#?} instead of {wanted:#?}")) }
}
