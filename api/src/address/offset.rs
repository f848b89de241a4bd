//! Offsets of addresses in a pool, as `NodeIPPool` counts them.
//!
//! Offset 0 is the first address of the ranges, in the order of the ranges. An excluded address keeps its
//! offset. **IPv4:** addresses whose last octet is 0 or 255 have no offset and consume none. **IPv6:** every
//! address has an offset. The IPv6 example of the proposal contradicts itself; here offset 16 of a pool that
//! begins at `::f` is `::1f`.

use std::net::IpAddr;

use super::{AddressRange, Family, RangeSet, number};

/// Addresses with an offset in each /24 of IPv4.
const PER_BLOCK: u128 = 254;

/// Offsets of the ranges of a pool. No operation takes time in proportion to the number of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    family: Family,
    /// Ranges in their order, without addresses of earlier ones.
    runs: Vec<AddressRange>,
}

impl Offsets {
    /// Offsets of ranges of one family; ranges of the other family are left out.
    #[must_use]
    pub fn new(family: Family, ranges: &[AddressRange]) -> Self {
        let mut seen = RangeSet::empty(family);
        let mut runs = Vec::with_capacity(ranges.len());
        for range in ranges.iter().filter(|range| range.family() == family) {
            let one = RangeSet::new(family, [range]);
            runs.extend(one.minus(&seen).ranges());
            seen = seen.union(&one);
        }
        Self { family, runs }
    }

    /// Returns the address with an offset; `None` after the last offset.
    #[must_use]
    pub fn address(&self, offset: u128) -> Option<IpAddr> {
        let mut left = offset;
        for run in &self.runs {
            let (first, last) = (rank(self.family, run.first()), rank(self.family, run.last()));
            // If the last address has no offset, its rank is one more than that of the last offset in the
            // run.
            let end = if has_offset(run.last_address()) { Some(last) } else { last.checked_sub(1) };
            let Some(end) = end.filter(|end| *end >= first) else { continue };
            if left <= end - first {
                return Some(self.family.address(at_rank(self.family, first + left)));
            }
            left -= (end - first).checked_add(1)?;
        }
        None
    }

    /// The offset of an address; `None` outside the ranges, and for IPv4 addresses without an offset.
    #[must_use]
    pub fn offset(&self, address: IpAddr) -> Option<u128> {
        if Family::of(address) != self.family || !has_offset(address) {
            return None;
        }
        let wanted = number(address);
        let mut before: u128 = 0;
        for run in &self.runs {
            let first = rank(self.family, run.first());
            if (run.first()..=run.last()).contains(&wanted) {
                return before.checked_add(rank(self.family, wanted) - first);
            }
            let here = rank(self.family, run.last()) - first;
            before = before.checked_add(here)?.checked_add(u128::from(has_offset(run.last_address())))?;
        }
        None
    }

    /// True if a range has the address, with or without an offset.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let one = AddressRange::single(address);
        self.runs.iter().any(|run| run.contains(&one))
    }
}

/// True if an address may have an offset: an IPv4 address only if its last octet is neither 0 nor 255.
#[must_use]
pub fn has_offset(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(v4.octets(), [.., 0 | 255]),
        IpAddr::V6(_) => true,
    }
}

/// Number of lower addresses of the family that have an offset.
fn rank(family: Family, number: u128) -> u128 {
    match family {
        Family::V4 => (number >> 8) * PER_BLOCK + (number & 0xff).saturating_sub(1),
        Family::V6 => number,
    }
}

/// Returns the address with an offset that has this rank.
fn at_rank(family: Family, rank: u128) -> u128 {
    match family {
        Family::V4 => ((rank / PER_BLOCK) << 8) + rank % PER_BLOCK + 1,
        Family::V6 => rank,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offsets(ranges: &[&str]) -> Offsets {
        let ranges: Vec<AddressRange> = ranges.iter().map(|range| range.parse().unwrap()).collect();
        Offsets::new(ranges[0].family(), &ranges)
    }

    fn check(offsets: &Offsets, pairs: &[(u128, &str)]) {
        for (offset, address) in pairs {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(offsets.address(*offset), Some(address), "{offset}");
            assert_eq!(offsets.offset(address), Some(*offset), "{address}");
        }
    }

    /// The three examples of the proposal that do not contradict themselves.
    #[test]
    fn n5_1_offsets_are_those_of_the_examples() {
        // Allocated offsets [0, 1, 2, 4, 5, 7] of traffic-1, where .4 and .7 are excluded.
        let traffic = offsets(&["10.10.10.1-10.10.10.10"]);
        let pairs = [(0, "10.10.10.1"), (1, "10.10.10.2"), (2, "10.10.10.3"), (3, "10.10.10.4")];
        check(&traffic, &pairs);
        check(&traffic, &[(4, "10.10.10.5"), (5, "10.10.10.6"), (6, "10.10.10.7"), (7, "10.10.10.8")]);
        let short = offsets(&["10.10.11.4-10.10.11.10"]);
        let pairs = [(0, "10.10.11.4"), (1, "10.10.11.5"), (2, "10.10.11.6"), (3, "10.10.11.7")];
        check(&short, &pairs);
        check(&short, &[(4, "10.10.11.8"), (5, "10.10.11.9"), (6, "10.10.11.10")]);
        assert_eq!(short.address(7), None);
        let long = offsets(&["10.10.11.4-10.10.12.10"]);
        let pairs = [(0, "10.10.11.4"), (1, "10.10.11.5"), (250, "10.10.11.254"), (251, "10.10.12.1")];
        check(&long, &pairs);
        let pairs = [(252, "10.10.12.2"), (257, "10.10.12.7"), (258, "10.10.12.8"), (260, "10.10.12.10")];
        check(&long, &pairs);
        assert_eq!(long.address(261), None);
    }

    /// The proposal prints 17 for `::1f` and 18 for `::20`, which can't follow from 1 for `::10`.
    #[test]
    fn n5_1_offsets_of_ipv6_deviate_from_the_example() {
        let six = offsets(&["2001:4860:4860::f-2001:4860:4860::ff"]);
        let pairs = [(0, "2001:4860:4860::f"), (1, "2001:4860:4860::10"), (16, "2001:4860:4860::1f")];
        check(&six, &pairs);
        check(&six, &[(17, "2001:4860:4860::20"), (240, "2001:4860:4860::ff")]);
        assert_eq!(six.address(241), None);
    }

    #[test]
    fn n5_2_addresses_without_an_offset_are_told_from_those_outside() {
        let two =
            offsets(&["10.0.1.250-10.0.2.5", "10.0.0.255-10.0.1.4", "10.0.9.0", "10.0.9.255-10.0.10.0"]);
        for (address, is_inside) in
            [("10.0.1.255", true), ("10.0.2.0", true), ("10.0.9.0", true), ("10.0.9.1", false)]
        {
            let address = address.parse().unwrap();
            assert_eq!((two.offset(address), two.contains(address)), (None, is_inside), "{address}");
        }
        // Offsets follow the order of the ranges.
        check(
            &two,
            &[(0, "10.0.1.250"), (4, "10.0.1.254"), (5, "10.0.2.1"), (9, "10.0.2.5"), (10, "10.0.1.1")],
        );
        assert_eq!(two.address(14), None);
        assert_eq!(two.offset("::1".parse().unwrap()), None);
    }

    #[test]
    fn a_range_twice_counts_once() {
        let twice = offsets(&["10.0.0.5-10.0.0.9", "10.0.0.1-10.0.0.20", "10.0.0.5-10.0.0.9"]);
        check(
            &twice,
            &[(0, "10.0.0.5"), (4, "10.0.0.9"), (5, "10.0.0.1"), (9, "10.0.0.10"), (19, "10.0.0.20")],
        );
        assert_eq!(twice.address(20), None);
    }

    #[test]
    fn the_largest_pools_overflow_nothing() {
        let all = offsets(&["::/0"]);
        check(&all, &[(0, "::"), (u128::MAX, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]);
        let four = offsets(&["0.0.0.0/0"]);
        check(&four, &[(0, "0.0.0.1"), ((1 << 24) * 254 - 1, "255.255.255.254")]);
        assert_eq!(four.address((1 << 24) * 254), None);
        assert_eq!(four.address(u128::MAX), None);
    }

    proptest! {
        /// Offsets agree with a count of the addresses one by one.
        #[test]
        fn offsets_are_those_of_counting(ends in proptest::collection::vec((0..2000_u32, 0..600_u32), 1..5)) {
            let ranges: Vec<AddressRange> = ends
                .iter()
                .map(|(first, more)| {
                    let at = |number: u32| Family::V4.address(u128::from(0x0a00_0000 + number));
                    AddressRange::new(at(*first), at(first + more)).unwrap()
                })
                .collect();
            let offsets = Offsets::new(Family::V4, &ranges);
            let mut counted: Vec<IpAddr> = Vec::new();
            // A range that is cut by an earlier one keeps its order.
            for number in ranges.iter().flat_map(|range| range.first()..=range.last()) {
                let address = Family::V4.address(number);
                if has_offset(address) && !counted.contains(&address) {
                    counted.push(address);
                }
            }
            for (offset, address) in counted.iter().enumerate() {
                prop_assert_eq!(offsets.address(offset as u128), Some(*address));
                prop_assert_eq!(offsets.offset(*address), Some(offset as u128));
            }
            prop_assert_eq!(offsets.address(counted.len() as u128), None);
        }
    }
}
