//! netplan: one file with a mapping of devices.
//!
//! DHCP is switched off. Router advertisements keep netplan's default. netplan has no resolver options.
//! A device with a known MAC address is matched by it, so the address survives a new interface name.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::file::{HEADER, PRIVATE, RenderError, RenderedFile};
use super::plan::{Device, Hop, Plan};
use super::yaml;

/// Path of the file. `50-cloud-init.yaml` is rewritten by cloud-init, so it is never used.
const PATH: &str = "/etc/netplan/60-ipamd.yaml";

/// Root of the document, which cloud-init's version 2 shares.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    network: Network,
}

#[derive(Debug, Serialize)]
struct Network {
    version: u8,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ethernets: BTreeMap<String, Ethernet>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    vlans: BTreeMap<String, Vlan>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Ethernet {
    #[serde(rename = "match")]
    found_by: Option<Match>,
    #[serde(flatten)]
    settings: Settings,
}

#[derive(Debug, Serialize)]
struct Match {
    macaddress: String,
}

#[derive(Debug, Serialize)]
struct Vlan {
    id: u16,
    link: String,
    #[serde(flatten)]
    settings: Settings,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Settings {
    dhcp4: Option<bool>,
    dhcp6: Option<bool>,
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
    #[serde(skip_serializing_if = "Nameservers::is_empty")]
    nameservers: Nameservers,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Route {
    to: String,
    via: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    on_link: bool,
    metric: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Nameservers {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    search: Vec<String>,
}

impl Nameservers {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.search.is_empty()
    }
}

pub(super) fn files(plan: &Plan) -> Result<Vec<RenderedFile>, RenderError> {
    let content = format!("{HEADER}{}", yaml::text(&document(plan))?);
    Ok(vec![RenderedFile { path: PATH.to_owned(), mode: PRIVATE, content }])
}

/// The document of a plan.
pub(super) fn document(plan: &Plan) -> Document {
    let mut network = Network { version: 2, ethernets: BTreeMap::new(), vlans: BTreeMap::new() };
    for device in &plan.devices {
        let settings = settings(device);
        match device.vlan.clone() {
            Some((link, id)) => {
                network.vlans.insert(device.name.clone(), Vlan { id, link, settings });
            }
            None => {
                let found_by = device.mac.map(|mac| Match { macaddress: mac.to_string() });
                network.ethernets.insert(device.name.clone(), Ethernet { found_by, settings });
            }
        }
    }
    Document { network }
}

fn settings(device: &Device) -> Settings {
    // The parent of a VLAN device may have DHCP in another file: netplan merges all files.
    let dhcp = (!device.addresses.is_empty()).then_some(false);
    Settings {
        dhcp4: dhcp,
        dhcp6: dhcp,
        mtu: device.mtu,
        addresses: device.addresses.iter().map(ToString::to_string).collect(),
        routes: device.routes.iter().map(route).collect(),
        nameservers: Nameservers {
            addresses: device.dns.nameservers.iter().map(ToString::to_string).collect(),
            search: device.dns.search.clone(),
        },
    }
}

/// Writes a default route as `0.0.0.0/0`: cloud-init 22 can't read `default`.
fn route(hop: &Hop) -> Route {
    Route {
        to: hop.destination.to_string(),
        via: hop.gateway.to_string(),
        on_link: hop.on_link,
        metric: hop.metric,
    }
}
