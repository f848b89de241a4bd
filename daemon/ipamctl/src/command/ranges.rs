//! Additions of ranges to a list, and removals.

use ipam_api::{AddressRange, Family, RangeSet};

/// Adds `more` to a list. Ranges that the list already covers are not repeated.
pub(crate) fn with(mut list: Vec<AddressRange>, more: &[AddressRange]) -> Vec<AddressRange> {
    for range in more {
        if !list.iter().any(|known| known.contains(range)) {
            list.push(*range);
        }
    }
    list
}

/// Removes `less` from a list. Unaffected ranges keep their notation and their order.
pub(crate) fn without(list: &[AddressRange], less: &[AddressRange]) -> Vec<AddressRange> {
    list.iter()
        .flat_map(|range| {
            let family: Family = range.family();
            let holes = RangeSet::new(family, less);
            RangeSet::new(family, [range]).minus(&holes).ranges().collect::<Vec<_>>()
        })
        .collect()
}

/// True if two ranges have an address in common.
pub(crate) fn meet(one: &AddressRange, other: &AddressRange) -> bool {
    one.family() == other.family() && one.first() <= other.last() && other.first() <= one.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(texts: &[&str]) -> Vec<AddressRange> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn ranges_are_added_once_and_cut_out() {
        let list = ranges(&["10.0.0.10-10.0.0.19", "2001:db8::1", "10.0.0.1"]);
        assert_eq!(with(list.clone(), &ranges(&["10.0.0.12"])), list);
        assert_eq!(with(list.clone(), &ranges(&["10.0.0.30"])).len(), 4);
        assert_eq!(
            without(&list, &ranges(&["10.0.0.12-10.0.0.13", "10.0.0.1"])),
            ranges(&["10.0.0.10-10.0.0.11", "10.0.0.14-10.0.0.19", "2001:db8::1"])
        );
        assert_eq!(without(&list, &[]), list);
    }
}
