//! State of a host's configuration, for `ipam-agent host status` and `ipam-agent doctor`.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::path::Path;

use ipam_api::limits::HOST_JOURNAL_BYTES_MAX;
use ipam_api::named_enum;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::journal::replace;

const NAME: &str = "host-status.json";
const NEW: &str = "host-status.json.new";

named_enum! {
/// State of a host's configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    /// No server has answered yet, and no addresses are known.
    #[default]
    Waiting = "waiting",
    /// The addresses are configured.
    Applied = "applied",
    /// A change waits for the answer of a server.
    Unconfirmed = "unconfirmed",
    /// A change cut the host off, and was undone.
    RolledBack = "rolled-back",
    /// The cluster asks for `take_over`.
    Reinstalled = "reinstalled",
    /// Some changes can't be made.
    Failed = "failed",
}
}

named_enum! {
/// Source of the addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The journal: no server has answered since the start.
    #[default]
    Journal = "journal",
    /// An answer of the servers.
    Server = "server",
}
}

/// Address of an interface.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressStatus {
    /// Address with its prefix.
    pub address: IpNet,
    /// Link that has the address.
    pub device: String,
    /// Pool of the address.
    pub pool: String,
    /// Gateway.
    pub gateway: Option<IpAddr>,
}

/// Interface of the host.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Current name of the link.
    pub device: String,
    /// Reason why the agent does not configure the interface.
    pub refused: Option<String>,
    /// Addresses of the interface.
    pub addresses: Vec<AddressStatus>,
}

/// State of a host's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// State.
    pub state: HostState,
    /// Source of the addresses.
    pub source: Source,
    /// Reason for a state other than `applied`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// Sections and addresses that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl HostStatus {
    /// Reads the state that the agent of a directory wrote last.
    ///
    /// # Errors
    /// The failed read, or its content.
    pub fn load(dir: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(dir.join(NAME))?.take(HOST_JOURNAL_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Writes the state.
    ///
    /// # Errors
    /// The failed write.
    pub fn store(&self, dir: &Path) -> io::Result<()> {
        replace(dir, NEW, NAME, &serde_json::to_vec_pretty(self)?)
    }
}
