//! Plans against sets of single addresses.

use std::collections::BTreeSet;

use ipam_api::Family;
use ipam_api::cluster_api::{IpPoolSpec, PrefixPoolSpec};
use proptest::prelude::*;

use super::{Plan, of_addresses, of_prefixes};

/// First of the 256 addresses of the model.
const BASE: u32 = 0x0a01_0200;
/// Addresses of a /24.
const SIZE: u32 = 256;

/// Entry of a list, and its addresses as offsets from [`BASE`].
#[derive(Debug, Clone)]
struct Entry {
    text: String,
    offsets: BTreeSet<u32>,
}

fn address(offset: u32) -> String {
    Family::V4.address((BASE + offset).into()).to_string()
}

fn entry() -> impl Strategy<Value = Entry> {
    let range = (0..SIZE, 0u32..24).prop_map(|(first, more)| {
        let last = (first + more).min(SIZE - 1);
        let text = if more == 0 { address(first) } else { format!("{}-{}", address(first), address(last)) };
        Entry { text, offsets: (first..=last).collect() }
    });
    // CIDR with host bits.
    let cidr = (0..SIZE, 27u8..=32).prop_map(|(offset, length)| {
        let size = 1 << (32 - length);
        let first = offset / size * size;
        Entry { text: format!("{}/{length}", address(offset)), offsets: (first..first + size).collect() }
    });
    prop_oneof![range, cidr]
}

/// A network-aligned CIDR of a length.
fn aligned() -> impl Strategy<Value = Entry> {
    (0..SIZE, 24u8..=32).prop_map(|(offset, length)| {
        let size = 1 << (32 - length);
        let first = offset / size * size;
        Entry { text: format!("{}/{length}", address(first)), offsets: (first..first + size).collect() }
    })
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.text.clone()).collect()
}

fn union(entries: &[Entry]) -> BTreeSet<u32> {
    entries.iter().flat_map(|entry| entry.offsets.iter().copied()).collect()
}

fn offsets(ranges: &[ipam_api::AddressRange]) -> BTreeSet<u32> {
    let numbers = ranges.iter().flat_map(|range| range.first()..=range.last());
    numbers.map(|number| u32::try_from(number).unwrap() - BASE).collect()
}

/// Checks the form of a plan.
fn check_form(plan: &Plan) -> Result<(), TestCaseError> {
    for ranges in [&plan.ranges, &plan.exclude] {
        for pair in ranges.windows(2) {
            prop_assert!(pair[0].last() + 1 < pair[1].first(), "{:?}", ranges);
        }
    }
    let (first, last) = (plan.ranges.first().unwrap(), plan.ranges.last().unwrap());
    prop_assert_eq!((plan.span.first(), plan.span.last()), (first.first(), last.last()));
    prop_assert!(offsets(&plan.exclude).is_subset(&offsets(&plan.ranges)));
    let subnet = ipam_api::AddressRange::of_cidr(plan.subnet);
    prop_assert!(subnet.contains(&plan.span), "{} {}", plan.subnet, plan.span);
    prop_assert_eq!(plan.subnet.trunc(), plan.subnet);
    Ok(())
}

proptest! {
    #[test]
    fn a_plan_of_addresses_is_that_of_sets(
        entries in proptest::collection::vec(entry(), 1..6),
        excluded in proptest::collection::vec(entry(), 0..6),
        gateway in proptest::option::of(0..SIZE),
        prefix in 20u8..=32,
        allocates_reserved in any::<bool>(),
    ) {
        let spec = IpPoolSpec {
            addresses: texts(&entries),
            prefix: Some(prefix),
            gateway: gateway.map(address),
            allocate_reserved_ip_addresses: allocates_reserved,
            excluded_addresses: texts(&excluded),
            ..IpPoolSpec::default()
        };
        let wanted = union(&entries);
        let lowest = BASE + wanted.first().unwrap();
        let mask = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        let (network, broadcast) = (lowest & !mask, lowest | mask);
        let is_inside = BASE + wanted.last().unwrap() <= broadcast;
        let plan = of_addresses(&spec);
        prop_assert_eq!(plan.is_ok(), is_inside, "{:?}", plan);
        let Ok(plan) = plan else { return Ok(()) };

        check_form(&plan)?;
        prop_assert_eq!(plan.subnet.to_string(), format!("{}/{prefix}", Family::V4.address(network.into())));
        prop_assert_eq!(offsets(&plan.ranges), wanted.clone());
        let reserves = !allocates_reserved && prefix <= 30;
        let is_reserved = |offset: u32| reserves && [network, broadcast].contains(&(BASE + offset));
        let left: BTreeSet<u32> = wanted
            .into_iter()
            .filter(|&offset| !union(&excluded).contains(&offset))
            .filter(|&offset| gateway != Some(offset) && !is_reserved(offset))
            .collect();
        prop_assert_eq!(plan.total, left.len() as u64);
        prop_assert_eq!(&offsets(&plan.ranges) - &offsets(&plan.exclude), left);
    }

    #[test]
    fn a_plan_of_prefixes_is_that_of_sets(
        prefixes in proptest::collection::vec(aligned(), 1..6),
        excluded in proptest::collection::vec(entry(), 0..4),
        length in 24u8..=32,
    ) {
        let spec = PrefixPoolSpec {
            prefixes: texts(&prefixes),
            allocation_prefix_length: Some(length),
            gateway: Some(address(1)),
            excluded_prefixes: texts(&excluded),
            ..PrefixPoolSpec::default()
        };
        let size = 1u32 << (32 - length);
        let plan = of_prefixes(&spec);
        prop_assert_eq!(plan.is_ok(), prefixes.iter().all(|prefix| prefix.offsets.len() >= size as usize));
        let Ok(plan) = plan else { return Ok(()) };

        check_form(&plan)?;
        let (wanted, never) = (union(&prefixes), union(&excluded));
        prop_assert_eq!(offsets(&plan.ranges), wanted.clone());
        prop_assert_eq!(offsets(&plan.exclude), &wanted & &never);
        let is_free = |offset: u32| wanted.contains(&offset) && !never.contains(&offset);
        let blocks = (0..SIZE).step_by(size as usize).filter(|first| (0..size).all(|n| is_free(first + n)));
        prop_assert_eq!(plan.total, blocks.count() as u64);
        // The subnet is the smallest one: no longer prefix contains all addresses.
        if plan.subnet.prefix_len() < 32 {
            let mut halves = plan.subnet.subnets(plan.subnet.prefix_len() + 1).unwrap();
            let contains = |half| ipam_api::AddressRange::of_cidr(half).contains(&plan.span);
            prop_assert!(!halves.any(contains), "{}", plan.subnet);
        }
    }
}
