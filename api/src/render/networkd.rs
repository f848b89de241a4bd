//! systemd-networkd: one `.network` file per device, and a `.netdev` file per VLAN device.
//!
//! DHCP is switched off where addresses are static. networkd uses one file per interface, so a parent of VLAN
//! devices that another file configures needs its `VLAN=` lines there. Router advertisements keep networkd's
//! default, which is to accept them on hosts that forward no packets. networkd has no resolver options.

use std::fmt::Write as _;

use super::file::{HEADER, PUBLIC, RenderError, RenderedFile};
use super::plan::{Device, Plan};

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    let mut files = Vec::new();
    for device in &plan.devices {
        if let Some((_, id)) = &device.vlan {
            files.push(file(device, "netdev", netdev(device, *id)));
        }
        files.push(file(
            device,
            "network",
            network(plan, device).map_err(|error| RenderError(error.to_string()))?,
        ));
    }
    Ok(files)
}

fn file(device: &Device, extension: &str, content: String) -> RenderedFile {
    let path = format!("/etc/systemd/network/60-ipamd-{}.{extension}", device.name);
    RenderedFile { path, mode: PUBLIC, content }
}

fn netdev(device: &Device, id: u16) -> String {
    let mtu = device.mtu.map(|mtu| format!("MTUBytes={mtu}\n")).unwrap_or_default();
    format!("{HEADER}[NetDev]\nName={}\nKind=vlan\n{mtu}\n[VLAN]\nId={id}\n", device.name)
}

fn network(plan: &Plan, device: &Device) -> Result<String, std::fmt::Error> {
    let mut text = format!("{HEADER}[Match]\n");
    match device.mac {
        // The permanent address, since VLAN devices and bonds share the current address of their parent.
        Some(mac) => writeln!(text, "PermanentMACAddress={mac}")?,
        None => writeln!(text, "Name={}", device.name)?,
    }
    if let Some(mtu) = device.mtu {
        writeln!(text, "\n[Link]\nMTUBytes={mtu}")?;
    }
    writeln!(text, "\n[Network]")?;
    if device.addresses.is_empty() {
        writeln!(
            text,
            "# If another .network file configures this interface, add the next lines there instead."
        )?;
    } else {
        writeln!(text, "DHCP=no")?;
    }
    for vlan in plan.vlans_of(&device.name) {
        writeln!(text, "VLAN={}", vlan.name)?;
    }
    for server in &device.dns.nameservers {
        writeln!(text, "DNS={server}")?;
    }
    if !device.dns.search.is_empty() {
        writeln!(text, "Domains={}", device.dns.search.join(" "))?;
    }
    for address in &device.addresses {
        writeln!(text, "\n[Address]\nAddress={address}")?;
    }
    for route in &device.routes {
        writeln!(text, "\n[Route]\nDestination={}\nGateway={}", route.destination, route.gateway)?;
        if route.on_link {
            writeln!(text, "GatewayOnLink=yes")?;
        }
        if let Some(metric) = route.metric {
            writeln!(text, "Metric={metric}")?;
        }
    }
    Ok(text)
}
