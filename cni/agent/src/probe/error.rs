//! Reasons for which probes have no result.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipam_api::limits::PROBE_ADDRESSES_MAX;
use ipam_api::problem::exit;

/// Failed probe. Each text ends with the next step.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel doesn't list the interfaces.
    #[error("can't list the interfaces: {0}; in a unit, permit AF_NETLINK in RestrictAddressFamilies")]
    Interfaces(#[source] io::Error),
    /// No interface has a prefix with the address.
    #[error("no interface has a prefix that identifies the link of {0}; name one with --interface")]
    NoInterface(IpAddr),
    /// There is no such interface.
    #[error("there is no interface {name:?}; name one of: {present}")]
    UnknownInterface {
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        present: String,
    },
    /// Loopback, or a tunnel.
    #[error("interface {0} is no Ethernet, and has neither ARP nor NDP; name another with --interface")]
    NotEthernet(String),
    /// IPv6 is off.
    #[error(
        "interface {0} has no IPv6 link-local address, and would miss answers; check that it is up, and \
         that sysctl net.ipv6.conf.{0}.disable_ipv6 is 0"
    )]
    NoLinkLocal(String),
    /// No host has such an address.
    #[error("{0} is no unicast address of a host; probe another")]
    NotUnicast(IpAddr),
    /// The wrong family.
    #[error("this is an IPv4 address in the form of IPv6; probe {0}")]
    Mapped(Ipv4Addr),
    /// More than one socket can take answers for.
    #[error("{0} addresses exceed the {PROBE_ADDRESSES_MAX} of one probe; probe fewer at once")]
    TooMany(usize),
    /// The process has no CAP_NET_RAW.
    #[error(
        "probes need CAP_NET_RAW; run the command as root, or permit it with: \
         setcap cap_net_raw+ep /usr/local/bin/ipam-agent"
    )]
    NotPermitted,
    /// No packet socket.
    #[error(
        "can't open a packet socket on {interface}: {error}; in a unit, permit AF_PACKET in \
         RestrictAddressFamilies"
    )]
    Open {
        /// Name of the interface.
        interface: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// A probe was not sent, also when it was repeated.
    #[error("can't send the probe of {address} on {interface}: {error}; check: ip link show {interface}")]
    Send {
        /// Name of the interface.
        interface: String,
        /// Address that was asked for.
        address: IpAddr,
        /// The kernel's reason.
        error: io::Error,
    },
    /// Answers can't be received.
    #[error("can't receive on {interface}: {error}; check: ip link show {interface}")]
    Receive {
        /// Name of the interface.
        interface: String,
        /// The kernel's reason.
        error: io::Error,
    },
}

impl ProbeError {
    /// Failure to open a socket.
    pub(super) fn open(interface: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ => Self::Open { interface: interface.to_owned(), error },
        }
    }

    /// Exit code of the command.
    pub(super) fn exit(&self) -> u8 {
        match self {
            Self::NotPermitted => exit::REFUSED,
            Self::Interfaces(_) | Self::Open { .. } | Self::Send { .. } | Self::Receive { .. } => {
                exit::UNAVAILABLE
            }
            _ => exit::USAGE,
        }
    }
}
