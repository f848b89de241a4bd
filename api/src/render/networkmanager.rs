//! NetworkManager: one keyfile per device.
//!
//! Addresses are static. A family without addresses is left alone: IPv4 is disabled, IPv6 stays with the
//! kernel. Name servers of such a family have no place and are left out. A keyfile without `uuid` gets one
//! that NetworkManager derives from the path, so it is the same after each rendering.

use std::fmt::{Error, Write as _};

use super::file::{HEADER, PRIVATE, RenderError, RenderedFile};
use super::plan::{Device, Plan, default_route};
use crate::Family;

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    plan.devices.iter().filter(|device| !is_bare(device)).map(file).collect()
}

/// True for a parent of VLAN devices that needs nothing itself: its own profile may have DHCP.
fn is_bare(device: &Device) -> bool {
    device.vlan.is_none() && device.addresses.is_empty() && device.mtu.is_none()
}

fn file(device: &Device) -> Result<RenderedFile, RenderError> {
    let path = format!("/etc/NetworkManager/system-connections/60-ipamd-{}.nmconnection", device.name);
    let content = keyfile(device).map_err(|error| RenderError(error.to_string()))?;
    Ok(RenderedFile { path, mode: PRIVATE, content })
}

fn keyfile(device: &Device) -> Result<String, Error> {
    let name = &device.name;
    let kind = if device.vlan.is_some() { "vlan" } else { "ethernet" };
    let mut text = format!("{HEADER}[connection]\nid=ipamd-{name}\ntype={kind}\n");
    if device.mac.is_none() {
        writeln!(text, "interface-name={name}")?;
    }
    if let Some((parent, id)) = &device.vlan {
        writeln!(text, "\n[vlan]\nid={id}\nparent={parent}")?;
    }
    if device.mac.is_some() || device.mtu.is_some() {
        writeln!(text, "\n[ethernet]")?;
    }
    if let Some(mac) = device.mac {
        writeln!(text, "mac-address={}", mac.to_string().to_ascii_uppercase())?;
    }
    if let Some(mtu) = device.mtu {
        writeln!(text, "mtu={mtu}")?;
    }
    for family in Family::BOTH {
        text.push_str(&section(device, family)?);
    }
    Ok(text)
}

fn section(device: &Device, family: Family) -> Result<String, Error> {
    let (title, idle) = if family == Family::V4 { ("ipv4", "disabled") } else { ("ipv6", "ignore") };
    if !device.has(family) {
        return Ok(format!("\n[{title}]\nmethod={idle}\n"));
    }
    let mut text = format!("\n[{title}]\nmethod=manual\n");
    for (number, address) in (1..).zip(device.addresses_of(family)) {
        writeln!(text, "address{number}={address}")?;
    }
    let plain = |route: &super::plan::Hop| {
        route.destination == default_route(family) && !route.on_link && route.metric.is_none()
    };
    let gateway = device.routes_of(family).find(|route| plain(route));
    if let Some(route) = gateway {
        writeln!(text, "gateway={}", route.gateway)?;
    }
    let others = device.routes_of(family).filter(|route| Some(*route) != gateway);
    for (number, route) in (1..).zip(others) {
        let metric = route.metric.map(|metric| format!(",{metric}")).unwrap_or_default();
        writeln!(text, "route{number}={},{}{metric}", route.destination, route.gateway)?;
        if route.on_link {
            writeln!(text, "route{number}_options=onlink=true")?;
        }
    }
    let servers = device.dns.nameservers.iter().filter(|server| Family::of(**server) == family);
    let servers: Vec<String> = servers.map(ToString::to_string).collect();
    for (key, words) in
        [("dns", &servers), ("dns-search", &device.dns.search), ("dns-options", &device.dns.options)]
    {
        if !words.is_empty() {
            writeln!(text, "{key}={};", words.join(";"))?;
        }
    }
    Ok(text)
}
