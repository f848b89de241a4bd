//! Offsets of addresses in the ranges of a pool.
//!
//! IPv4 addresses that end in .0 or .255 have no offset. Every other address has one, excluded ones included.

use std::net::IpAddr;

use super::{AddressRange, Family, number};

/// True if the address has no offset: IPv4 addresses whose last octet is 0 or 255.
#[must_use]
pub fn has_no_offset(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => matches!(v4.octets(), [.., 0 | 255]),
        IpAddr::V6(_) => false,
    }
}

/// Offset of an address in these ranges, in their order; none outside them, and none without an offset.
#[must_use]
pub fn offset_of(ranges: &[AddressRange], address: IpAddr) -> Option<u128> {
    if has_no_offset(address) {
        return None;
    }
    let (family, wanted) = (Family::of(address), number(address));
    let mut before = 0_u128;
    for range in ranges {
        let first = rank(range.family(), range.first());
        if range.family() == family && (range.first()..=range.last()).contains(&wanted) {
            return Some(before.saturating_add(rank(family, wanted).saturating_sub(first)));
        }
        let end = rank(range.family(), range.last()).saturating_sub(first);
        let is_last_counted = !has_no_offset(range.last_address());
        before = before.saturating_add(end).saturating_add(u128::from(is_last_counted));
    }
    None
}

/// Number of addresses with an offset below this one.
fn rank(family: Family, number: u128) -> u128 {
    match family {
        Family::V4 => number - 2 * (number / 256) - u128::from(number % 256 > 0),
        Family::V6 => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(ranges: &[&str], address: &str) -> Option<u128> {
        let ranges: Vec<AddressRange> = ranges.iter().map(|range| range.parse().unwrap()).collect();
        offset_of(&ranges, address.parse().unwrap())
    }

    #[test]
    fn offsets_count_all_addresses_but_those_at_the_ends_of_24_bit_blocks() {
        let one = ["10.10.11.4-10.10.12.10"];
        for (address, expected) in [
            ("10.10.11.4", Some(0)),
            ("10.10.11.254", Some(250)),
            ("10.10.11.255", None),
            ("10.10.12.0", None),
            ("10.10.12.1", Some(251)),
            ("10.10.12.10", Some(260)),
            ("10.10.12.11", None),
        ] {
            assert_eq!(offset(&one, address), expected, "{address}");
        }
        assert_eq!(offset(&["10.0.0.250-10.0.0.255", "10.0.3.0-10.0.3.9"], "10.0.3.1"), Some(5));
        assert_eq!(offset(&["2001:db8::f-2001:db8::ff"], "2001:db8::1f"), Some(16));
        assert_eq!(offset(&["10.0.0.1"], "2001:db8::"), None);
        assert_eq!(offset(&["::/0"], "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), Some(u128::MAX));
    }
}
