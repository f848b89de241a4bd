//! Reasons for which probes have no result.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipam_api::limits::PROBE_ADDRESSES_MAX;
use ipam_api::problem::exit;

/// Reason for a failed probe. Each message ends with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel doesn't list the interfaces.
    #[error("can't list the interfaces: {0}; in a unit, permit AF_NETLINK in RestrictAddressFamilies")]
    Interfaces(#[source] io::Error),
    /// No interface has a prefix with the address.
    #[error("no interface has a prefix that identifies the link of {0}; name one with --interface")]
    NoInterface(IpAddr),
    /// The named interface doesn't exist.
    #[error("there is no interface {name:?}; name one of: {present}")]
    UnknownInterface {
        /// Requested name.
        name: String,
        /// Names of the existing interfaces.
        present: String,
    },
    /// The interface is the loopback, or a tunnel.
    #[error("interface {0} is no Ethernet, and has neither ARP nor NDP; name another with --interface")]
    NotEthernet(String),
    /// The interface has no IPv6 link-local address.
    #[error(
        "interface {0} has no IPv6 link-local address, and would miss answers; check that it is up, and \
         that sysctl net.ipv6.conf.{0}.disable_ipv6 is 0"
    )]
    NoLinkLocal(String),
    /// The address is not unicast.
    #[error("{0} is no unicast address of a host; probe another")]
    NotUnicast(IpAddr),
    /// The address is an IPv4 address in IPv6 form.
    #[error("this is an IPv4 address in the form of IPv6; probe {0}")]
    Mapped(Ipv4Addr),
    /// The answers would exceed the receive buffer of a socket.
    #[error("{0} addresses exceed the {PROBE_ADDRESSES_MAX} of one probe; probe fewer at once")]
    TooMany(usize),
    /// The process has no CAP_NET_RAW.
    #[error(
        "probes need CAP_NET_RAW; run the command as root, or permit it with: \
         setcap cap_net_raw+ep /usr/local/bin/ipam-agent"
    )]
    NotPermitted,
    /// The packet socket can't be opened.
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
    /// A probe could not be sent, even after repetitions.
    #[error("can't send the probe of {address} on {interface}: {error}; check: ip link show {interface}")]
    Send {
        /// Name of the interface.
        interface: String,
        /// Probed address.
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
