//! Frames of probes, and the answers in frames from the wire. Pure: bytes in, bytes out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pnet_base::MacAddr;
use pnet_packet::arp::{Arp, ArpHardwareTypes, ArpOperations, ArpPacket, MutableArpPacket};
use pnet_packet::ethernet::{EtherType, EtherTypes, Ethernet, EthernetPacket, MutableEthernetPacket};
use pnet_packet::icmpv6::ndp::{
    MutableNeighborAdvertPacket, MutableNeighborSolicitPacket, NdpOption, NdpOptionTypes, NeighborAdvert,
    NeighborAdvertFlags, NeighborAdvertPacket, NeighborSolicit, NeighborSolicitPacket,
};
use pnet_packet::icmpv6::{Icmpv6Code, Icmpv6Packet, Icmpv6Type, Icmpv6Types, checksum};
use pnet_packet::ip::IpNextHeaderProtocols;
use pnet_packet::ipv6::{Ipv6, Ipv6Packet, MutableIpv6Packet};
use pnet_packet::{FromPacket as _, Packet as _};

/// Version of IPv6 in its header.
const IPV6: u8 = 6;
/// Hop limit of neighbour discovery. A router lowers it, so the message is from this link (RFC 4861, 7.1).
const HOP_LIMIT: u8 = 255;
/// Code of all messages of neighbour discovery.
const CODE: Icmpv6Code = Icmpv6Code(0);
/// Octets of an Ethernet address in ARP.
const MAC_BYTES: u8 = 6;
/// Octets of an IPv4 address in ARP.
const IPV4_BYTES: u8 = 4;
/// Length of an NDP option with an Ethernet address, in units of eight octets.
const MAC_OPTION_LENGTH: u8 = 1;

/// Makes the ARP probe of an address (RFC 5227, 2.1.1).
///
/// The sender protocol address is zero, so that no host changes its cache.
#[must_use]
pub fn arp_probe(mac: MacAddr, target: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, Ipv4Addr::UNSPECIFIED, target)
}

/// Makes the ARP announcement of an address (RFC 5227, 2.3): hosts that have it in their caches change them.
#[must_use]
pub fn arp_announcement(mac: MacAddr, address: Ipv4Addr) -> Vec<u8> {
    arp_request(mac, address, address)
}

fn arp_request(mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let request = Arp {
        hardware_type: ArpHardwareTypes::Ethernet,
        protocol_type: EtherTypes::Ipv4,
        hw_addr_len: MAC_BYTES,
        proto_addr_len: IPV4_BYTES,
        operation: ArpOperations::Request,
        sender_hw_addr: mac,
        sender_proto_addr: sender,
        target_hw_addr: MacAddr::zero(),
        target_proto_addr: target,
        payload: Vec::new(),
    };
    let mut bytes = vec![0; ArpPacket::packet_size(&request)];
    if let Some(mut packet) = MutableArpPacket::new(&mut bytes) {
        packet.populate(&request);
    }
    ethernet(mac, MacAddr::broadcast(), EtherTypes::Arp, bytes)
}

/// Makes the neighbour solicitation of an address, to its solicited-node multicast group.
///
/// Without a source, the message is that of duplicate address detection (RFC 4862, 5.4.2): a holder answers
/// all nodes, and no host changes its cache. With a link-local source, the message is that of address
/// resolution (RFC 4861, 7.2.2).
#[must_use]
pub fn solicitation(mac: MacAddr, source: Option<Ipv6Addr>, target: Ipv6Addr) -> Vec<u8> {
    let [.., high, middle, low] = target.octets();
    let group =
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(high), u16::from_be_bytes([middle, low]));
    // The option is forbidden with the unspecified source (RFC 4861, 4.3).
    let option = source.map(|_| NdpOption {
        option_type: NdpOptionTypes::SourceLLAddr,
        length: MAC_OPTION_LENGTH,
        data: mac.octets().to_vec(),
    });
    let source = source.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let message = NeighborSolicit {
        icmpv6_type: Icmpv6Types::NeighborSolicit,
        icmpv6_code: CODE,
        checksum: 0,
        reserved: 0,
        target_addr: target,
        options: option.into_iter().collect(),
        payload: Vec::new(),
    };
    // pnet's `packet_size` counts an option as one octet.
    let options = message.options.len() * usize::from(MAC_OPTION_LENGTH) * 8;
    let mut bytes = vec![0; NeighborSolicitPacket::minimum_packet_size() + options];
    if let Some(mut packet) = MutableNeighborSolicitPacket::new(&mut bytes) {
        packet.populate(&message);
    }
    if let Some(sum) = Icmpv6Packet::new(&bytes).map(|packet| checksum(&packet, &source, &group))
        && let Some(mut packet) = MutableNeighborSolicitPacket::new(&mut bytes)
    {
        packet.set_checksum(sum);
    }
    // RFC 2464, 7: the last four octets of the group.
    let destination = MacAddr::new(0x33, 0x33, 0xff, high, middle, low);
    ipv6(mac, destination, source, group, bytes)
}

/// Makes the unsolicited neighbour advertisement of an address to all nodes (RFC 4861, 7.2.6).
///
/// Hosts that have the address in their caches change them.
#[must_use]
pub fn advertisement(mac: MacAddr, address: Ipv6Addr) -> Vec<u8> {
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let message = NeighborAdvert {
        icmpv6_type: Icmpv6Types::NeighborAdvert,
        icmpv6_code: CODE,
        checksum: 0,
        flags: NeighborAdvertFlags::Override,
        reserved: 0,
        target_addr: address,
        options: vec![NdpOption {
            option_type: NdpOptionTypes::TargetLLAddr,
            length: MAC_OPTION_LENGTH,
            data: mac.octets().to_vec(),
        }],
        payload: Vec::new(),
    };
    let options = usize::from(MAC_OPTION_LENGTH) * 8;
    let mut bytes = vec![0; NeighborAdvertPacket::minimum_packet_size() + options];
    if let Some(mut packet) = MutableNeighborAdvertPacket::new(&mut bytes) {
        packet.populate(&message);
    }
    if let Some(sum) = Icmpv6Packet::new(&bytes).map(|packet| checksum(&packet, &address, &group))
        && let Some(mut packet) = MutableNeighborAdvertPacket::new(&mut bytes)
    {
        packet.set_checksum(sum);
    }
    ipv6(mac, MacAddr::new(0x33, 0x33, 0, 0, 0, 1), address, group, bytes)
}

/// Frame with a message of neighbour discovery.
fn ipv6(mac: MacAddr, to: MacAddr, source: Ipv6Addr, destination: Ipv6Addr, payload: Vec<u8>) -> Vec<u8> {
    let header = Ipv6 {
        version: IPV6,
        traffic_class: 0,
        flow_label: 0,
        payload_length: u16::try_from(payload.len()).unwrap_or_default(),
        next_header: IpNextHeaderProtocols::Icmpv6,
        hop_limit: HOP_LIMIT,
        source,
        destination,
        payload,
    };
    let mut bytes = vec![0; Ipv6Packet::packet_size(&header)];
    if let Some(mut packet) = MutableIpv6Packet::new(&mut bytes) {
        packet.populate(&header);
    }
    ethernet(mac, to, EtherTypes::Ipv6, bytes)
}

fn ethernet(source: MacAddr, destination: MacAddr, ethertype: EtherType, payload: Vec<u8>) -> Vec<u8> {
    let frame = Ethernet { destination, source, ethertype, payload };
    let mut bytes = vec![0; EthernetPacket::packet_size(&frame)];
    if let Some(mut packet) = MutableEthernetPacket::new(&mut bytes) {
        packet.populate(&frame);
    }
    bytes
}

/// Reads the address that a frame reports as in use, and the station that uses it.
///
/// Any station on the link can send these bytes. Only a well-formed message counts as an answer.
#[must_use]
pub fn answer(frame: &[u8]) -> Option<(IpAddr, MacAddr)> {
    let frame = EthernetPacket::new(frame)?;
    let (address, mac) = match frame.get_ethertype() {
        EtherTypes::Arp => arp_sender(&frame)?,
        EtherTypes::Ipv6 => (advertised(&frame)?.into(), frame.get_source()),
        _ => return None,
    };
    (mac.is_unicast() && !mac.is_zero()).then_some((address, mac))
}

/// Sender of an ARP message. A request also shows that its sender uses the address (RFC 5227, 2.1.1).
fn arp_sender(frame: &EthernetPacket<'_>) -> Option<(IpAddr, MacAddr)> {
    let arp = ArpPacket::new(frame.payload())?.from_packet();
    let is_understood = arp.hardware_type == ArpHardwareTypes::Ethernet
        && arp.protocol_type == EtherTypes::Ipv4
        && (arp.hw_addr_len, arp.proto_addr_len) == (MAC_BYTES, IPV4_BYTES)
        && [ArpOperations::Request, ArpOperations::Reply].contains(&arp.operation);
    is_understood.then(|| (arp.sender_proto_addr.into(), arp.sender_hw_addr))
}

/// Target of a valid neighbour advertisement (RFC 4861, 7.1.2).
///
/// The frame's source identifies the holder. The option with the holder's address is not read: pnet computes
/// the length of an option in eight bits, and panics if that length is 32 or more.
fn advertised(frame: &EthernetPacket<'_>) -> Option<Ipv6Addr> {
    let header = Ipv6Packet::new(frame.payload())?;
    let is_near = header.get_version() == IPV6
        && header.get_next_header() == IpNextHeaderProtocols::Icmpv6
        && header.get_hop_limit() == HOP_LIMIT;
    let message = Icmpv6Packet::new(header.payload()).filter(|_| is_near)?;
    let is_whole =
        message.get_checksum() == checksum(&message, &header.get_source(), &header.get_destination());
    let kind: (Icmpv6Type, Icmpv6Code) = (message.get_icmpv6_type(), message.get_icmpv6_code());
    let is_advertisement = kind == (Icmpv6Types::NeighborAdvert, CODE);
    let advertisement =
        NeighborAdvertPacket::new(message.packet()).filter(|_| is_whole && is_advertisement)?;
    Some(advertisement.get_target_addr())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: MacAddr = MacAddr(2, 0, 0, 0, 0, 1);
    const THEIRS: MacAddr = MacAddr(2, 0, 0, 0, 0, 2);

    fn v4() -> Ipv4Addr {
        Ipv4Addr::new(10, 99, 0, 7)
    }

    fn v6() -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x12, 0x3456)
    }

    fn ours() -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)
    }

    /// A reply to the ARP probe, or a neighbour advertisement.
    fn arp_reply() -> Vec<u8> {
        let mut frame = arp_probe(THEIRS, v4());
        let mut arp = MutableArpPacket::new(&mut frame[14..]).unwrap();
        arp.set_operation(ArpOperations::Reply);
        arp.set_sender_proto_addr(v4());
        frame
    }

    /// Makes an advertisement of the solicitation, whose options it keeps.
    fn advertisement(source: Option<Ipv6Addr>) -> Vec<u8> {
        let mut frame = solicitation(THEIRS, source, v6());
        frame[54] = 136;
        sum(&mut frame);
        frame
    }

    fn sum(frame: &mut [u8]) {
        let header = Ipv6Packet::new(&frame[14..]).unwrap();
        let message = Icmpv6Packet::new(header.payload()).unwrap();
        let sum = checksum(&message, &header.get_source(), &header.get_destination());
        frame[56..58].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn an_arp_probe_has_the_bytes_of_rfc_5227() {
        let expected = [
            &[0xff; 6][..],
            &[2, 0, 0, 0, 0, 1, 8, 6],
            &[0, 1, 8, 0, 6, 4, 0, 1],
            &[2, 0, 0, 0, 0, 1, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 10, 99, 0, 7],
        ];
        assert_eq!(arp_probe(OURS, v4()), expected.concat());
        // An announcement has the address as its sender, too.
        let mut announced = expected.concat();
        announced[28..32].copy_from_slice(&[10, 99, 0, 7]);
        assert_eq!(arp_announcement(OURS, v4()), announced);
    }

    #[test]
    fn a_solicitation_has_the_bytes_of_rfc_4861() {
        let head = |length: u8| {
            [
                0x33, 0x33, 0xff, 0x12, 0x34, 0x56, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, length,
                58, 255,
            ]
        };
        let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56];
        let target = v6().octets();
        let detection = solicitation(OURS, None, v6());
        let sum = &detection[56..58];
        let expected = [&head(24)[..], &[0; 16], &group, &[135, 0], sum, &[0; 4], &target];
        assert_eq!(detection, expected.concat());

        let resolution = solicitation(OURS, Some(ours()), v6());
        let sum = &resolution[56..58];
        let option = [1, 1, 2, 0, 0, 0, 0, 1];
        let expected = [&head(32)[..], &ours().octets(), &group, &[135, 0], sum, &[0; 4], &target, &option];
        assert_eq!(resolution, expected.concat());
    }

    #[test]
    fn an_advertisement_is_an_answer_for_its_own_address() {
        let frame = super::advertisement(THEIRS, v6());
        assert_eq!(answer(&frame), Some((v6().into(), THEIRS)));
        let option = [2, 1, 2, 0, 0, 0, 0, 2];
        assert_eq!(
            (&frame[..6], frame[58], &frame[78..]),
            (&[0x33, 0x33, 0, 0, 0, 1][..], 0x20, &option[..])
        );
    }

    #[test]
    fn answers_name_the_address_and_the_station() {
        assert_eq!(answer(&arp_reply()), Some((v4().into(), THEIRS)));
        for source in [None, Some(ours())] {
            assert_eq!(answer(&advertisement(source)), Some((v6().into(), THEIRS)));
        }
        // An ARP request for another address also shows the sender's own address.
        let mut request = arp_reply();
        request[21] = 1;
        assert_eq!(answer(&request), Some((v4().into(), THEIRS)));
        // Ethernet pads short frames.
        for mut frame in [arp_reply(), advertisement(None)] {
            let expected = answer(&frame);
            frame.extend([0xaa; 18]);
            assert_eq!(answer(&frame), expected);
        }
    }

    #[test]
    fn probes_are_no_answers() {
        assert_eq!(answer(&arp_probe(THEIRS, v4())), Some((Ipv4Addr::UNSPECIFIED.into(), THEIRS)));
        assert_eq!(answer(&solicitation(THEIRS, None, v6())), None);
        assert_eq!(answer(&solicitation(THEIRS, Some(ours()), v6())), None);
    }

    #[test]
    fn malformed_messages_are_no_answers() {
        // Position and value: Ethernet's type; ARP's types, lengths, operation and sender.
        for (at, value) in [(13, 0), (15, 6), (16, 9), (18, 8), (19, 16), (21, 3), (22, 3)] {
            let mut frame = arp_reply();
            frame[at] = value;
            assert_eq!(answer(&frame), None, "{at}");
        }
        // Ethernet's source and type; version, next header, hop limit; type and code.
        for (at, value) in [(6, 3), (13, 0), (14, 0x40), (20, 0), (21, 254), (54, 135), (55, 1)] {
            let mut frame = advertisement(None);
            frame[at] = value;
            sum(&mut frame);
            assert_eq!(answer(&frame), None, "{at}");
        }
        let mut damaged = advertisement(None);
        damaged[77] ^= 1;
        assert_eq!(answer(&damaged), None);
        for whole in [arp_reply(), advertisement(None), advertisement(Some(ours()))] {
            for length in 0..whole.len() {
                assert_eq!(answer(&whole[..length]), None, "{length}");
            }
        }
    }

    #[test]
    fn options_of_any_length_are_harmless() {
        for length in 0..=u8::MAX {
            let mut frame = advertisement(Some(ours()));
            frame[79] = length;
            sum(&mut frame);
            assert_eq!(answer(&frame), Some((v6().into(), THEIRS)), "{length}");
        }
    }

    proptest! {
        #[test]
        fn random_frames_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&bytes);
        }

        /// Random changes of valid frames get further than random bytes.
        #[test]
        fn changed_frames_are_harmless(
            kind in 0..3_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            length in any::<prop::sample::Index>(),
            is_summed in any::<bool>(),
        ) {
            let mut frame = [arp_reply(), advertisement(None), advertisement(Some(ours()))][kind].clone();
            for (at, value) in changes {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            let is_message = |ip: Ipv6Packet<'_>| ip.payload().len() >= 4;
            if is_summed && kind > 0 && Ipv6Packet::new(&frame[14..]).is_some_and(is_message) {
                sum(&mut frame);
            }
            let _ = answer(&frame);
            frame.truncate(length.index(frame.len() + 1));
            let _ = answer(&frame);
        }
    }
}
