//! Fields of Ethernet frames that the switch reads.

use crate::random::Random;

/// Address of an Ethernet device.
pub(super) type Mac = [u8; 6];

/// Length of the Ethernet header.
const HEADER: usize = 14;
/// Ethernet type of ARP.
const ARP: [u8; 2] = [0x08, 0x06];
/// Ethernet type of IPv6.
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Next header of ICMPv6.
const ICMPV6: u8 = 58;
/// Types of ICMPv6 that belong to neighbour discovery: solicitations, advertisements and redirects.
const NDP: std::ops::RangeInclusive<u8> = 133..=137;

/// Frame as the switch sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a>(&'a [u8]);

impl<'a> Frame<'a> {
    /// Returns a frame if it has a header.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= HEADER).then_some(Self(bytes))
    }

    /// Complete frame.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Receiver.
    pub(super) fn to(self) -> Mac {
        self.field(0)
    }

    /// Sender.
    pub(super) fn from(self) -> Mac {
        self.field(6)
    }

    /// True for ARP.
    pub(super) fn is_arp(self) -> bool {
        self.field(12) == ARP
    }

    /// True for ARP and NDP.
    pub(super) fn is_probe(self) -> bool {
        self.is_arp()
            || self.field(12) == IPV6
                && self.0.get(HEADER + 6) == Some(&ICMPV6)
                && self.0.get(HEADER + 40).is_some_and(|kind| NDP.contains(kind))
    }

    /// Copy with one flipped bit behind the header.
    ///
    /// The checksums of IP, TCP, UDP and ICMP detect each single bit that matters.
    pub(super) fn corrupted(self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.0.to_vec();
        let place = HEADER + random.below(bytes.len() - HEADER);
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= 1 << random.below(8);
        }
        bytes
    }

    fn field<const N: usize>(self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
}

/// True for an address of one device.
pub(super) fn is_unicast(mac: Mac) -> bool {
    mac.first().is_some_and(|first| first & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: [u8; 2], next_header: u8, icmp: u8) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        bytes.extend(kind);
        let mut ipv6 = [0; 48];
        (ipv6[6], ipv6[40]) = (next_header, icmp);
        bytes.extend(ipv6);
        bytes
    }

    #[test]
    fn arp_and_ndp_are_probes_and_nothing_else_is() {
        let is_probe = |bytes: &[u8]| Frame::new(bytes).unwrap().is_probe();
        assert!(is_probe(&frame(ARP, 0, 0)));
        assert!(is_probe(&frame(IPV6, 58, 135)) && is_probe(&frame(IPV6, 58, 136)));
        assert!(!is_probe(&frame(IPV6, 58, 128)), "an echo request");
        assert!(!is_probe(&frame(IPV6, 6, 135)), "TCP");
        assert!(!is_probe(&frame([8, 0], 58, 135)), "IPv4");
    }

    #[test]
    fn corruption_flips_one_bit_behind_the_header() {
        let (bytes, mut random) = (frame(IPV6, 6, 0), Random::new(3));
        for _ in 0..200 {
            let other = Frame::new(&bytes).unwrap().corrupted(&mut random);
            assert_eq!(other[..HEADER], bytes[..HEADER]);
            let flipped: u32 = bytes.iter().zip(&other).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1);
        }
        assert!(Frame::new(&bytes[..13]).is_none());
        assert_eq!(Frame::new(&bytes[..14]).unwrap().corrupted(&mut random), &bytes[..14]);
    }

    #[test]
    fn addresses_of_one_device_are_told_from_groups() {
        assert!(is_unicast([2, 0, 0, 0, 0, 1]));
        assert!(!is_unicast([0xff; 6]) && !is_unicast([0x33, 0x33, 0, 0, 0, 1]));
    }
}
