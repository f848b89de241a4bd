//! Peer port, and the proof of identity between two members.
//!
//! **Invariant:** a connection is read only after the other end has proved that it is a member: by a
//! certificate that names it, or by running as this member's user on this host. The one exception is a port
//! that the operator has opened explicitly.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipam_api::name::shown;
use ipam_api::place::{PEER_ADDRESS_FORM, PeerAddress};
use ipam_api::resolve::connect;
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::stream::{self, PeerStream};
use super::tls::{Caller, PeerTls, refused};
use crate::simulation;
use crate::socket::{PrivateSocket, same_user};

/// The port at which a member answers its peers.
#[derive(Debug)]
pub enum PeerPort {
    /// No port: the member is alone.
    Closed,
    /// A port that requires a member's certificate of every caller.
    Tls(TcpListener, PeerTls),
    /// A unix socket that answers processes of this member's user.
    Socket(PrivateSocket),
    /// A port that believes every caller (`insecure = true`).
    Open(TcpListener),
    /// A port in the network of a simulation, which believes every caller.
    Simulated(Box<dyn simulation::Port>),
}

/// Proof of identity that a member gives and requires; its own port determines which.
#[derive(Debug, Clone)]
pub(crate) enum PeerProof {
    Tls(PeerTls),
    SameUser,
    Nothing,
}

/// An accepted connection before the first read.
pub(super) enum Call {
    Network(TcpStream, IpAddr),
    Socket(UnixStream),
    Simulated(PeerStream, IpAddr),
}

impl PeerPort {
    /// The proof that belongs to this port.
    pub(crate) fn proof(&self) -> PeerProof {
        match self {
            Self::Tls(_, tls) => PeerProof::Tls(tls.clone()),
            Self::Closed | Self::Socket(_) => PeerProof::SameUser,
            Self::Open(_) | Self::Simulated(_) => PeerProof::Nothing,
        }
    }

    /// Accepts the next connection; waits for ever at a closed port.
    pub(super) async fn accept(&self) -> io::Result<Call> {
        match self {
            Self::Closed => std::future::pending().await,
            Self::Tls(listener, _) | Self::Open(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Call::Network(stream, address.ip()))
            }
            Self::Socket(socket) => Ok(Call::Socket(socket.accept().await?)),
            Self::Simulated(port) => {
                let (halves, address) = port.accept().await?;
                Ok(Call::Simulated(stream::simulated(halves), address))
            }
        }
    }
}

impl Call {
    /// Address of the caller, for connection limits by address.
    pub(super) fn address(&self) -> IpAddr {
        match self {
            Self::Network(_, address) | Self::Simulated(_, address) => *address,
            Self::Socket(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    /// The caller, as log lines name it.
    pub(super) fn caller(&self) -> String {
        match self {
            Self::Network(_, address) | Self::Simulated(_, address) => address.to_string(),
            Self::Socket(stream) => match stream.peer_cred() {
                Ok(credentials) => format!("user {}", credentials.uid()),
                Err(_) => "a user of this host".to_owned(),
            },
        }
    }

    /// Refuses a process of another user at once, so that it takes no place from a member.
    pub(super) fn check_user(&self) -> io::Result<()> {
        match self {
            Self::Network(..) | Self::Simulated(..) => Ok(()),
            Self::Socket(stream) => same_user(stream),
        }
    }

    /// The one place where a stream from a peer is made; its counterpart is [`dial`].
    pub(super) async fn receive(self, proof: PeerProof) -> io::Result<(PeerStream, Caller)> {
        match (self, proof) {
            (Self::Socket(stream), _) => {
                same_user(&stream)?;
                Ok((stream::socket(stream), Caller::Believed))
            }
            (Self::Network(stream, _), PeerProof::Tls(tls)) => {
                stream.set_nodelay(true)?;
                tls.answer(stream).await
            }
            (Self::Network(stream, _), PeerProof::Nothing) => {
                stream.set_nodelay(true)?;
                Ok((stream::plain(stream), Caller::Believed))
            }
            (Self::Simulated(stream, _), _) => Ok((stream, Caller::Believed)),
            // No port produces this combination.
            (Self::Network(..), PeerProof::SameUser) => Err(refused("it gives no proof that it is a member")),
        }
    }
}

/// Connects to the member of this name: the only place that creates streams to peers.
///
/// # Errors
/// If there is no answer, or no proof of this name.
pub(crate) async fn dial(name: &str, address: &str, proof: &PeerProof) -> io::Result<PeerStream> {
    let place = PeerAddress::parse(address).ok_or_else(|| match address {
        "" => refused("it has no peer port: it was started as the only member of its cluster"),
        _ => refused(format!("{} is not a peer address: {PEER_ADDRESS_FORM}", shown(address))),
    })?;
    match (place, proof) {
        (PeerAddress::Socket(path), PeerProof::SameUser | PeerProof::Nothing) => {
            let stream = UnixStream::connect(path).await?;
            same_user(&stream)?;
            Ok(stream::socket(stream))
        }
        (PeerAddress::Network(address), PeerProof::Tls(_) | PeerProof::Nothing) => {
            if let Some(simulation) = simulation::present() {
                return (simulation.connect)(address).await.map(stream::simulated);
            }
            let stream = connect(address).await?;
            stream.set_nodelay(true)?;
            match proof {
                PeerProof::Tls(tls) => tls.call(stream, name).await,
                PeerProof::SameUser | PeerProof::Nothing => Ok(stream::plain(stream)),
            }
        }
        (PeerAddress::Socket(_), PeerProof::Tls(_)) => Err(refused(
            "it answers at a unix socket, and this member has [peer_tls]: give all members [peer_tls] and an \
             address host:port, or none",
        )),
        (PeerAddress::Network(_), PeerProof::SameUser) => Err(refused(
            "it answers at an address of the network, and this member has no [peer_tls]: give all members \
             [peer_tls]",
        )),
    }
}
