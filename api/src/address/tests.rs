//! Parsing of addresses and ranges, and operations on sets of ranges.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn range(text: &str) -> AddressRange {
    text.parse().unwrap()
}

#[test]
fn all_three_forms_are_read_and_printed_canonically() {
    for (text, shown) in [
        ("10.0.0.7", "10.0.0.7"),
        ("10.0.0.7-10.0.0.7", "10.0.0.7"),
        ("10.0.0.0/30", "10.0.0.0-10.0.0.3"),
        ("10.0.0.9/32", "10.0.0.9"),
        ("2001:DB8:0:0::1-2001:db8::F", "2001:db8::1-2001:db8::f"),
        ("2001:db8::/127", "2001:db8::-2001:db8::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ] {
        assert_eq!(range(text).to_string(), shown);
        assert_eq!(range(shown), range(text));
    }
}

#[test]
fn each_mistake_has_its_code() {
    for (text, code) in [
        ("10.0.0.9/24", Code::CidrHasHostBits),
        ("10.0.0.9-10.0.0.5", Code::RangeReversed),
        ("10.0.0.9-2001:db8::1", Code::FamilyMismatch),
        ("10.0.0.9 - 10.0.0.10", Code::InvalidField),
        ("10.0.0.256", Code::InvalidField),
        ("10.0.0.0/33", Code::InvalidField),
        ("010.0.0.1", Code::InvalidField),
        ("a-b-c", Code::InvalidField),
        ("", Code::InvalidField),
    ] {
        assert_eq!(text.parse::<AddressRange>().unwrap_err().code, code, "{text}");
    }
}

#[test]
fn the_ends_of_the_family_do_not_overflow() {
    let all = RangeSet::new(Family::V6, &[range("::/0")]);
    assert_eq!(all.size(), u128::MAX);
    assert!(all.minus(&all).is_empty());
    let upper = RangeSet::new(Family::V6, &[range("8000::/1")]);
    assert_eq!(all.minus(&upper).union(&upper), all);
    assert!(upper.contains(u128::MAX) && !upper.contains(0));
}

fn naive(set: &RangeSet) -> BTreeSet<u128> {
    set.ranges().flat_map(|r| r.first()..=r.last()).collect()
}

prop_compose! {
    fn small_set()(ends in proptest::collection::vec((0u32..60, 0u32..60), 0..8)) -> RangeSet {
        let ranges: Vec<AddressRange> = ends
            .iter()
            .map(|(a, b)| {
                let (first, last) = (u128::from(*a.min(b)), u128::from(*a.max(b)));
                AddressRange { family: Family::V4, first, last }
            })
            .collect();
        RangeSet::new(Family::V4, &ranges)
    }
}

proptest! {
    #[test]
    fn arithmetic_equals_that_of_sets(a in small_set(), b in small_set()) {
        prop_assert_eq!(naive(&a.union(&b)), naive(&a).union(&naive(&b)).copied().collect());
        prop_assert_eq!(naive(&a.intersection(&b)), naive(&a).intersection(&naive(&b)).copied().collect());
        prop_assert_eq!(naive(&a.minus(&b)), naive(&a).difference(&naive(&b)).copied().collect());
        prop_assert_eq!(a.size(), naive(&a).len() as u128);
        for n in 0..62 {
            prop_assert_eq!(a.contains(n), naive(&a).contains(&n));
        }
    }
}
