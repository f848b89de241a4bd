//! Packet socket of one interface and one family.

use std::io;
use std::os::fd::AsRawFd as _;

use ipam_api::limits::PROBE_FRAME_BYTES_MAX;
use nix::sys::socket::{LinkAddr, bind, recvfrom};
use pnet_packet::ethernet::{EtherType, EtherTypes};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::io::unix::AsyncFd;

/// Verdict of a filter: the whole frame.
const PASS: u32 = u32::MAX;
/// BPF: loads the octet at a fixed position (`BPF_LD | BPF_B | BPF_ABS`).
const LOAD_BYTE: u16 = 0x30;
/// BPF: skips instructions if the value is equal, or if it isn't (`BPF_JMP | BPF_JEQ | BPF_K`).
const JUMP_IF: u16 = 0x15;
/// BPF: ends with a verdict (`BPF_RET | BPF_K`).
const RETURN: u16 = 0x06;

/// Lets neighbour advertisements pass. Without it, other IPv6 traffic of a busy host could fill the socket,
/// and the kernel would drop an answer.
const ADVERTISEMENTS: [SockFilter; 6] = [
    // The next header is ICMPv6.
    SockFilter::new(LOAD_BYTE, 0, 0, 14 + 6),
    SockFilter::new(JUMP_IF, 0, 3, 58),
    // The type is that of a neighbour advertisement.
    SockFilter::new(LOAD_BYTE, 0, 0, 14 + 40),
    SockFilter::new(JUMP_IF, 0, 1, 136),
    SockFilter::new(RETURN, 0, 0, PASS),
    SockFilter::new(RETURN, 0, 0, 0),
];

/// Opens a packet socket that receives nothing, and closes it.
pub(super) fn permitted() -> io::Result<()> {
    Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))).map(|_| ())
}

/// Packet socket, bound to an interface and to the frames of one type.
///
/// The socket receives one type only. For all types, the kernel would copy every frame that the host sends
/// and receives.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: AsyncFd<Socket>,
    index: usize,
    buffer: [u8; PROBE_FRAME_BYTES_MAX],
}

impl PacketSocket {
    /// Opens a socket for ARP or IPv6. Needs CAP_NET_RAW.
    pub(super) fn open(link: LinkAddr, ethertype: EtherType) -> io::Result<Self> {
        // packet(7): the protocol is in network byte order.
        let protocol = Protocol::from(i32::from(ethertype.0.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), Some(protocol))?;
        if ethertype == EtherTypes::Ipv6 {
            socket.attach_filter(&ADVERTISEMENTS)?;
        }
        // The address that getifaddrs(3) returns has no protocol, so the socket keeps its own.
        bind(socket.as_raw_fd(), &link)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for types that may close their descriptor; a socket keeps it"
        )]
        let fd = AsyncFd::new(socket)?;
        Ok(Self { fd, index: link.ifindex(), buffer: [0; PROBE_FRAME_BYTES_MAX] })
    }

    /// Sends a frame, without waiting.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.fd.get_ref().send(frame).map(|_| ())
    }

    /// Takes a frame that has arrived, without waiting. A longer one is truncated.
    ///
    /// Frames of other interfaces are empty: those that arrived before the socket was bound, and those with a
    /// VLAN tag, which belong to the interface of that VLAN.
    pub(super) fn take(&mut self) -> io::Result<Option<&[u8]>> {
        match recvfrom::<LinkAddr>(self.fd.as_raw_fd(), &mut self.buffer) {
            Ok((length, from)) => {
                let is_ours = from.is_some_and(|from| from.ifindex() == self.index);
                Ok(Some(self.buffer.get(..length).filter(|_| is_ours).unwrap_or_default()))
            }
            Err(nix::Error::EAGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until further frames can be read.
    pub(super) async fn wait(&self) -> io::Result<()> {
        self.fd.readable().await?.clear_ready();
        Ok(())
    }
}
