//! Number of aligned blocks in a set of addresses.

use ipam_api::RangeSet;

/// Number of aligned blocks with this prefix length that fit into the set; saturates.
pub(super) fn count(set: &RangeSet, length: u8) -> u128 {
    let order = u32::from(set.family().bits().saturating_sub(length));
    let offset = 1u128.checked_shl(order).map_or(u128::MAX, |size| size - 1);
    let block = |number: u128| number.checked_shr(order).unwrap_or_default();
    set.ranges().fold(0, |sum: u128, range| {
        // First block that begins in the range, and first one that doesn't end in it.
        let first = block(range.first()).saturating_add(u128::from(range.first() & offset != 0));
        let end = block(range.last()).saturating_add(u128::from(range.last() & offset == offset));
        sum.saturating_add(end.saturating_sub(first))
    })
}

#[cfg(test)]
mod tests {
    use ipam_api::Family;
    use ipam_api::address::AddressRange;
    use proptest::prelude::*;

    use super::*;

    fn set(family: Family, ranges: &[&str]) -> RangeSet {
        let ranges: Vec<AddressRange> = ranges.iter().map(|range| range.parse().unwrap()).collect();
        RangeSet::new(family, &ranges)
    }

    #[test]
    fn blocks_at_the_ends_of_a_family_are_counted() {
        for (family, ranges, length, blocks) in [
            (Family::V4, &["0.0.0.0/0"][..], 32, 1 << 32),
            (Family::V4, &["0.0.0.0/0"], 1, 2),
            (Family::V4, &["0.0.0.0/0"], 0, 1),
            (Family::V4, &["255.255.255.254-255.255.255.255"], 31, 1),
            (Family::V4, &["10.0.0.1-10.0.0.2"], 31, 0),
            (Family::V6, &["::/0"], 1, 2),
            (Family::V6, &["::/0"], 0, 1),
            (Family::V6, &["::/0"], 127, 1 << 127),
            (Family::V6, &["::/0"], 128, u128::MAX),
            (Family::V6, &["::1-::2", "ffff::/16"], 64, 1 << 48),
            (Family::V6, &[], 64, 0),
        ] {
            assert_eq!(count(&set(family, ranges), length), blocks, "{ranges:?} /{length}");
        }
    }

    proptest! {
        #[test]
        fn the_number_is_that_of_an_enumeration(
            ends in proptest::collection::vec((0u32..256, 0u32..256), 0..8),
            length in 24u8..=32,
        ) {
            let base = 0x0a00_0000;
            let ranges: Vec<AddressRange> = ends.iter().map(|(a, b)| {
                let address = |number: u32| Family::V4.address((base + number).into());
                AddressRange::new(address(*a.min(b)), address(*a.max(b))).unwrap()
            }).collect();
            let set = RangeSet::new(Family::V4, &ranges);
            let size = 1u32 << (32 - length);
            let fits = |first: &u32| (0..size).all(|n| set.contains((base + first + n).into()));
            let blocks = (0..256).step_by(size as usize).filter(fits).count();
            prop_assert_eq!(count(&set, length), blocks as u128);
        }
    }
}
