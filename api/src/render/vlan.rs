//! Names and places of VLAN devices.

use super::file::RenderError;
use crate::limits::{INTERFACE_NAME_CHARS_MAX, VLAN_ID_MAX};

/// MTU of an Ethernet device without configuration.
pub(super) const DEFAULT_MTU: u32 = 1500;

/// Device of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// The interface itself.
    Direct(String),
    /// A VLAN device over a parent.
    Vlan { parent: String, name: String, id: u16 },
}

impl Placement {
    /// Name of the device.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Direct(name) | Self::Vlan { name, .. } => name,
        }
    }
}

/// Returns the name of the VLAN device over a parent: `eth0.110`, or `vlan110` if that is too long.
#[must_use]
pub fn vlan_device(parent: &str, vlan: u16) -> String {
    let name = format!("{parent}.{vlan}");
    if name.len() <= INTERFACE_NAME_CHARS_MAX { name } else { format!("vlan{vlan}") }
}

/// Finds the device for an address of an interface with a VLAN id, where 0 is none.
pub(super) fn placement(interface: &str, vlan: u16) -> Result<Placement, RenderError> {
    if vlan > VLAN_ID_MAX {
        return Err(RenderError(format!("{vlan} is no VLAN id; ids end at {VLAN_ID_MAX}")));
    }
    if vlan == 0 || interface == format!("vlan{vlan}") {
        return Ok(Placement::Direct(interface.to_owned()));
    }
    let parent = interface.strip_suffix(&format!(".{vlan}")).filter(|parent| !parent.is_empty());
    Ok(match parent {
        Some(parent) => Placement::Vlan { parent: parent.to_owned(), name: interface.to_owned(), id: vlan },
        None => {
            Placement::Vlan { parent: interface.to_owned(), name: vlan_device(interface, vlan), id: vlan }
        }
    })
}
