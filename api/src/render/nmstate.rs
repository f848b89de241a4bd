//! nmstate: one desired state.
//!
//! A family without addresses is not mentioned, so nmstate leaves it alone. Name servers are those of the
//! host, since nmstate has one resolver for all interfaces. nmstate has no on-link routes; a direct route to
//! the gateway replaces them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::file::{HEADER, PUBLIC, RenderError, RenderedFile};
use super::plan::{Device, Plan};
use super::yaml;
use crate::Family;

/// Path of the file, which `nmstate.service` applies at boot.
const PATH: &str = "/etc/nmstate/60-ipamd.yml";

#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct State {
    interfaces: Vec<Entry>,
    routes: Option<Config<Vec<Route>>>,
    dns_resolver: Option<Config<Resolver>>,
}

#[derive(Debug, Serialize)]
struct Config<T> {
    config: T,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    state: &'static str,
    identifier: Option<&'static str>,
    mac_address: Option<String>,
    mtu: Option<u32>,
    vlan: Option<Vlan>,
    ipv4: Option<V4>,
    ipv6: Option<V6>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Vlan {
    base_iface: String,
    id: u16,
}

#[derive(Debug, Serialize)]
struct V4 {
    enabled: bool,
    dhcp: bool,
    address: Vec<Address>,
}

#[derive(Debug, Serialize)]
struct V6 {
    enabled: bool,
    dhcp: bool,
    autoconf: bool,
    address: Vec<Address>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Address {
    ip: IpAddr,
    prefix_length: u8,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Route {
    destination: IpNet,
    next_hop_address: IpAddr,
    next_hop_interface: String,
    metric: Option<u32>,
}

#[derive(Debug, Default, Serialize)]
struct Resolver {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    server: Vec<IpAddr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    search: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    let routes: Vec<Route> = plan.devices.iter().flat_map(routes).collect();
    let state = State {
        interfaces: plan.devices.iter().map(entry).collect(),
        routes: (!routes.is_empty()).then_some(Config { config: routes }),
        dns_resolver: resolver(plan).map(|config| Config { config }),
    };
    let content = format!("{HEADER}{}", yaml::text(&state)?);
    Ok(vec![RenderedFile { path: PATH.to_owned(), mode: PUBLIC, content }])
}

fn entry(device: &Device) -> Entry {
    let addresses = |family| -> Vec<Address> {
        let address = |net: &IpNet| Address { ip: net.addr(), prefix_length: net.prefix_len() };
        device.addresses_of(family).map(address).collect()
    };
    let v4 = device.has(Family::V4);
    let v6 = device.has(Family::V6);
    Entry {
        name: device.name.clone(),
        kind: if device.vlan.is_some() { "vlan" } else { "ethernet" },
        state: "up",
        identifier: device.mac.map(|_| "mac-address"),
        mac_address: device.mac.map(|mac| mac.to_string()),
        mtu: device.mtu,
        vlan: device.vlan.clone().map(|(base_iface, id)| Vlan { base_iface, id }),
        ipv4: v4.then(|| V4 { enabled: true, dhcp: false, address: addresses(Family::V4) }),
        ipv6: v6.then(|| V6 { enabled: true, dhcp: false, autoconf: false, address: addresses(Family::V6) }),
    }
}

fn routes(device: &Device) -> Vec<Route> {
    let over = |destination: IpNet, next_hop_address: IpAddr, metric: Option<u32>| Route {
        destination,
        next_hop_address,
        next_hop_interface: device.name.clone(),
        metric,
    };
    let mut direct: Vec<IpAddr> = Vec::new();
    let mut all = Vec::new();
    for route in &device.routes {
        let is_on_link = route.on_link && !is_link_local(route.gateway);
        if is_on_link && !direct.contains(&route.gateway) {
            direct.push(route.gateway);
            all.push(over(IpNet::from(route.gateway), no_hop(route.gateway), None));
        }
        all.push(over(route.destination, route.gateway, route.metric));
    }
    all
}

/// Next hop of a direct route, as zeros. nmstate reports this form, and treats any other as another route.
fn no_hop(gateway: IpAddr) -> IpAddr {
    match gateway {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// True for addresses that every IPv6 link has.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn resolver(plan: &Plan) -> Option<Resolver> {
    let mut all = Resolver::default();
    for dns in plan.devices.iter().map(|device| &device.dns) {
        let new = |server: &&IpAddr| !all.server.contains(server);
        all.server.extend(dns.nameservers.iter().filter(new).copied().collect::<Vec<_>>());
        let new = |domain: &&String| !all.search.contains(domain);
        all.search.extend(dns.search.iter().filter(new).cloned().collect::<Vec<_>>());
        let new = |option: &&String| !all.options.contains(option);
        all.options.extend(dns.options.iter().filter(new).cloned().collect::<Vec<_>>());
    }
    let is_empty = all.server.is_empty() && all.search.is_empty() && all.options.is_empty();
    (!is_empty).then_some(all)
}
