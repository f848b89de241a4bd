//! ifupdown: one file with a stanza per address.
//!
//! ifupdown finds interfaces by name only. With a static IPv6 address it switches router advertisements
//! off, which is its default. Lines that begin with `dns-` need the package `resolvconf`.

use std::fmt::{Error, Write as _};

use super::file::{HEADER, PUBLIC, RenderError, RenderedFile};
use super::plan::{Device, Hop, Plan, default_route};
use crate::Family;

/// Path of the file. A name with a dot would be skipped by `source-directory`.
const PATH: &str = "/etc/network/interfaces.d/60-ipamd";

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    let mut content = HEADER.to_owned();
    for device in &plan.devices {
        content.push_str(&stanzas(device).map_err(|error| RenderError(error.to_string()))?);
    }
    Ok(vec![RenderedFile { path: PATH.to_owned(), mode: PUBLIC, content }])
}

fn stanzas(device: &Device) -> Result<String, Error> {
    let name = &device.name;
    let mut text = format!("\nauto {name}\n");
    let mut is_first = true;
    for family in Family::BOTH {
        let mut addresses = device.addresses_of(family).peekable();
        while let Some(address) = addresses.next() {
            let method = if family == Family::V4 { "inet" } else { "inet6" };
            writeln!(text, "iface {name} {method} static\n    address {address}")?;
            if std::mem::take(&mut is_first) {
                text.push_str(&of_device(device)?);
            }
            // Routes follow the last address of their family, so each gateway is reachable.
            if addresses.peek().is_none() {
                text.push_str(&routes(device, family)?);
            }
        }
    }
    if is_first {
        writeln!(text, "iface {name} inet manual")?;
        text.push_str(&of_device(device)?);
    }
    Ok(text)
}

/// Options of the device. A device has them in its first stanza only.
fn of_device(device: &Device) -> Result<String, Error> {
    let mut text = String::new();
    if let Some((parent, id)) = &device.vlan {
        writeln!(text, "    vlan-raw-device {parent}\n    vlan-id {id}")?;
    }
    if let Some(mtu) = device.mtu {
        writeln!(text, "    mtu {mtu}")?;
    }
    let servers: Vec<String> = device.dns.nameservers.iter().map(ToString::to_string).collect();
    for (option, words) in
        [("nameservers", &servers), ("search", &device.dns.search), ("options", &device.dns.options)]
    {
        if !words.is_empty() {
            writeln!(text, "    dns-{option} {}", words.join(" "))?;
        }
    }
    Ok(text)
}

fn routes(device: &Device, family: Family) -> Result<String, Error> {
    let mut text = String::new();
    for Hop { destination, gateway, on_link, metric } in device.routes_of(family) {
        // ifupdown itself makes the route over `gateway` an on-link route.
        if *destination == default_route(family) && metric.is_none() {
            writeln!(text, "    gateway {gateway}")?;
            continue;
        }
        let version = if family == Family::V4 { 4 } else { 6 };
        let on_link = if *on_link { " onlink" } else { "" };
        let metric = metric.map(|metric| format!(" metric {metric}")).unwrap_or_default();
        writeln!(
            text,
            "    up ip -{version} route replace {destination} via {gateway} dev {}{on_link}{metric}",
            device.name
        )?;
    }
    Ok(text)
}
