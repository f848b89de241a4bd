//! Formats, and the entry point of all renderers.

use serde::{Deserialize, Serialize};

use crate::render::{RenderError, RenderedFile};
use crate::resource::Interface;

crate::named_enum! {
/// Configuration format of a network manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// netplan, below `/etc/netplan`.
    Netplan = "netplan",
    /// systemd-networkd, below `/etc/systemd/network`.
    Networkd = "networkd",
    /// ifupdown, below `/etc/network/interfaces.d`.
    Ifupdown = "ifupdown",
    /// nmstate, as a desired state.
    Nmstate = "nmstate",
    /// NetworkManager keyfiles, below `/etc/NetworkManager/system-connections`.
    Networkmanager = "networkmanager",
    /// Network configuration of cloud-init, version 2.
    CloudInit = "cloud-init",
}
}

/// Renders the files of a format for all interfaces of an endpoint.
///
/// # Errors
/// The reason, if the format cannot express an interface.
pub fn render(format: Format, interfaces: &[Interface]) -> Result<Vec<RenderedFile>, RenderError> {
    Err(RenderError(format!("{format} can't express {} interfaces yet", interfaces.len())))
}
