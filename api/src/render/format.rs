//! Formats of configuration files.

use serde::{Deserialize, Serialize};

use crate::name::is_not;
use crate::problem::Problem;

crate::named_enum! {
/// Configuration format of a network manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ConfigurationFormat"))]
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

impl std::str::FromStr for Format {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            is_not(text, &format!("a format of host configurations: {all}"))
        })
    }
}
