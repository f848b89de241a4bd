//! Links of this host that the sections `[[interface]]` select. Pure.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::limits::INTERFACES_MAX;
use ipam_api::mac::MacAddress;
use ipam_api::name::InterfaceName;

use super::kernel::{Link, Observed};
use crate::host_config::{InterfaceConfig, Selector, fits};

/// Interface of the host's endpoint and its present link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Name of the interface in requests. It stays the same when the link of a section with `mac` is renamed.
    pub name: InterfaceName,
    /// Current name of the link.
    pub device: String,
    /// Index of the link.
    pub index: u32,
    /// Ethernet address of the link.
    pub mac: Option<MacAddress>,
    /// Index of its section.
    pub section: usize,
    /// Position among the interfaces, which determines the metric of its routes.
    pub place: u32,
}

/// Links of all sections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Interfaces with their links, in the order of the sections.
    pub bound: Vec<Bound>,
    /// Sections and links that are ignored, with the reason.
    pub warnings: Vec<String>,
}

impl Bindings {
    /// Finds the links. `names` has the names under which links of sections with `mac` were first requested.
    #[must_use]
    pub fn find(
        sections: &[InterfaceConfig],
        observed: &Observed,
        names: &BTreeMap<MacAddress, InterfaceName>,
    ) -> Self {
        let mut bindings = Self::default();
        let (mut links, mut taken): (BTreeSet<u32>, BTreeSet<InterfaceName>) = Default::default();
        for (section, config) in sections.iter().enumerate() {
            let found = matching(&config.selector, observed);
            if found.is_empty() {
                bindings.warnings.push(format!("no link of this host has {}", config.selector));
            }
            for link in found {
                let Ok(own) = InterfaceName::new(&link.name) else {
                    bindings.warnings.push(format!("the link {:?} has no usable name", link.name));
                    continue;
                };
                let former = link.mac.filter(|_| matches!(config.selector, Selector::Mac(_)));
                let name = former.and_then(|mac| names.get(&mac)).cloned().unwrap_or(own);
                if !links.insert(link.index) || !taken.insert(name.clone()) {
                    bindings.warnings.push(format!(
                        "{} is left out of {}: an earlier section has it",
                        link.name, config.selector
                    ));
                    continue;
                }
                if bindings.bound.len() == INTERFACES_MAX {
                    bindings.warnings.push(format!(
                        "{} is left out: a host gets addresses for {INTERFACES_MAX} interfaces",
                        link.name
                    ));
                    continue;
                }
                let place = u32::try_from(bindings.bound.len()).unwrap_or_default();
                let (device, index, mac) = (link.name.clone(), link.index, link.mac);
                bindings.bound.push(Bound { name, device, index, mac, section, place });
            }
        }
        bindings
    }

    /// Interface with this name in requests.
    #[must_use]
    pub fn named(&self, name: &InterfaceName) -> Option<&Bound> {
        self.bound.iter().find(|bound| bound.name == *name)
    }
}

fn matching<'a>(selector: &Selector, observed: &'a Observed) -> Vec<&'a Link> {
    match selector {
        Selector::Name(name) => observed.named(name.as_str()).into_iter().collect(),
        // VLAN devices are excluded: they share the Ethernet address of their parent.
        Selector::Mac(mac) => {
            let own: Vec<&Link> = observed
                .links
                .iter()
                .filter(|link| link.mac == Some(*mac) && link.vlan.is_none() && !link.is_loopback)
                .collect();
            // A bridge or a bond also shares the address of its port. Only the port is hardware.
            let hardware: Vec<&Link> =
                own.iter().copied().filter(|link| link.permanent_mac == Some(*mac)).collect();
            let found = if hardware.is_empty() { own } else { hardware };
            found.into_iter().take(1).collect()
        }
        // VLAN devices are excluded: `eth*` would match the agent's own `eth1.100`.
        Selector::Match(pattern) => {
            let fitting =
                |link: &&Link| link.vlan.is_none() && !link.is_loopback && fits(pattern, &link.name);
            let mut found: Vec<&Link> = observed.links.iter().filter(fitting).collect();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            found
        }
    }
}
