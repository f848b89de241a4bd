//! Peer of a connection: address, Unix credentials and TLS client name.

use std::net::{IpAddr, SocketAddr};

use ipam_api::certificate::Identity;
use ipam_api::spiffe::SpiffeId;
use ipam_api::{Name, ObjectName};

/// Peer of a connection. Every request has it among its extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Client over the network.
    Tcp {
        /// Address of the client.
        address: SocketAddr,
        /// Name in the verified client certificate, if one was presented.
        certificate: Option<ClientName>,
    },
    /// A process of this machine, over the unix socket.
    Socket {
        /// User at the time of connecting, according to the kernel.
        uid: u32,
    },
}

impl Peer {
    /// The address of a caller that came over the network.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp { address, .. } => Some(address.ip()),
            Self::Socket { .. } => None,
        }
    }
}

/// Subject of a verified client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientName {
    /// A person or program.
    Client { name: Name },
    /// A node with its agent and plugin.
    Node {
        /// Realm of the node.
        realm: Name,
        /// The node's name.
        name: ObjectName,
    },
    /// A workload with a SPIFFE id, on a listener that identifies its clients by them.
    Spiffe { id: SpiffeId },
}

impl ClientName {
    /// Client that a certificate names; none for a member's certificate, which only members accept.
    #[must_use]
    pub fn of(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Client { name } => Some(Self::Client { name }),
            Identity::Node { realm, name } => Some(Self::Node { realm, name }),
            Identity::Member { .. } => None,
        }
    }
}
