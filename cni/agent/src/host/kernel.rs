//! State of the kernel's links, addresses and routes, and changes of it. Tests have another kernel.

use std::fmt;
use std::net::IpAddr;

use ipam_api::mac::MacAddress;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Link of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Index by which addresses and routes refer to the link.
    pub index: u32,
    /// Name, such as `eth0`.
    pub name: String,
    /// Present Ethernet address.
    pub mac: Option<MacAddress>,
    /// Ethernet address of the hardware, if it has one.
    pub permanent_mac: Option<MacAddress>,
    /// The largest packet, in bytes.
    pub mtu: u32,
    /// True if an administrator has switched it on.
    pub is_up: bool,
    /// True if frames can be sent.
    pub has_carrier: bool,
    /// True for the loopback interface.
    pub is_loopback: bool,
    /// Index of the parent and 802.1Q id of a VLAN device.
    pub vlan: Option<(u32, u16)>,
    /// Index of the underlying link of a VLAN device, a macvlan and similar links.
    pub parent: Option<u32>,
    /// True for a port of a bridge, a bond or another link.
    pub is_port: bool,
}

/// Address of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddress {
    /// Index of the link.
    pub link: u32,
    /// Address with its prefix.
    pub address: IpNet,
    /// True if it has the protocol number of the agent.
    pub is_tagged: bool,
    /// True during duplicate address detection.
    pub is_tentative: bool,
    /// True if another host answered during duplicate address detection.
    pub is_duplicate: bool,
}

/// Route by way of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostRoute {
    /// Destination.
    pub destination: IpNet,
    /// Gateway.
    pub gateway: IpAddr,
    /// Metric; routes with a lower one have precedence.
    pub metric: u32,
    /// True if no prefix of the interface contains the gateway.
    pub on_link: bool,
}

impl fmt::Display for HostRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} via {} metric {}", self.destination, self.gateway, self.metric)?;
        if self.on_link { f.write_str(" onlink") } else { Ok(()) }
    }
}

/// State of the kernel at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// All links.
    pub links: Vec<Link>,
    /// All addresses.
    pub addresses: Vec<HostAddress>,
    /// Routes with the protocol number of the agent, with the index of their link.
    pub routes: Vec<(u32, HostRoute)>,
    /// True if the kernel keeps the protocol number of addresses (5.18 and later).
    pub has_tags: bool,
}

impl Observed {
    /// Link with a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Link with an index.
    #[must_use]
    pub fn link(&self, index: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.index == index)
    }
}

/// One change: one request to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Creates a VLAN device.
    AddVlan {
        /// Name of the device.
        device: String,
        /// Name of its parent.
        parent: String,
        /// 802.1Q id.
        id: u16,
    },
    /// Removes a VLAN device.
    RemoveVlan {
        /// Name of the device.
        device: String,
    },
    /// Switches a link on.
    SetUp {
        /// Name of the link.
        device: String,
    },
    /// Sets the largest packet.
    SetMtu {
        /// Name of the link.
        device: String,
        /// Bytes.
        mtu: u32,
    },
    /// Adds an address.
    AddAddress {
        /// Name of the link.
        device: String,
        /// Address with its prefix.
        address: IpNet,
    },
    /// Removes an address.
    RemoveAddress {
        /// Name of the link.
        device: String,
        /// Address with its prefix.
        address: IpNet,
        /// True if the link has other IPv4 addresses with this prefix, which the kernel must keep.
        has_others: bool,
    },
    /// Adds a route.
    AddRoute {
        /// Name of the link.
        device: String,
        /// The route.
        route: HostRoute,
    },
    /// Removes a route.
    RemoveRoute {
        /// Name of the link.
        device: String,
        /// The route.
        route: HostRoute,
    },
}

impl Change {
    /// Name of the link that the change affects.
    #[must_use]
    pub fn device(&self) -> &str {
        match self {
            Self::AddVlan { device, .. }
            | Self::RemoveVlan { device }
            | Self::SetUp { device }
            | Self::SetMtu { device, .. }
            | Self::AddAddress { device, .. }
            | Self::RemoveAddress { device, .. }
            | Self::AddRoute { device, .. }
            | Self::RemoveRoute { device, .. } => device,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddVlan { device, parent, id } => write!(f, "add VLAN device {device} ({id} on {parent})"),
            Self::RemoveVlan { device } => write!(f, "remove VLAN device {device}"),
            Self::SetUp { device } => write!(f, "set {device} up"),
            Self::SetMtu { device, mtu } => write!(f, "set the MTU of {device} to {mtu}"),
            Self::AddAddress { device, address } => write!(f, "add address {address} to {device}"),
            Self::RemoveAddress { device, address, .. } => {
                write!(f, "remove address {address} from {device}")
            }
            Self::AddRoute { device, route } => write!(f, "add route {route} on {device}"),
            Self::RemoveRoute { device, route } => write!(f, "remove route {route} on {device}"),
        }
    }
}

/// Refusal of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// The object exists already, and is not the agent's.
    #[error("it exists already")]
    Exists,
    /// The object does not exist.
    #[error("it does not exist")]
    Missing,
    /// The process may not change the configuration.
    #[error("not permitted; the agent needs CAP_NET_ADMIN, see ipam-agent doctor")]
    NotPermitted,
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

/// The kernel of a host.
pub trait Kernel: Send + Sync {
    /// Reads the state.
    fn observe(&self) -> impl Future<Output = Result<Observed, KernelError>> + Send;

    /// Makes one change.
    fn change(&self, change: &Change) -> impl Future<Output = Result<(), KernelError>> + Send;
}
