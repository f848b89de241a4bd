//! Vectors of the in-cluster provider for pools of prefixes (part B4 of the reference), and limits.

use ipam_api::address::AddressRange;
use ipam_api::cluster_api::{PoolReference, PrefixPoolSpec};
use ipam_api::limits::{BODY_BYTES_MAX, RANGES_MAX};
use ipam_api::{Code, Name, Problem, RangeSet};

use super::addresses_tests::allocatable;
use super::{Plan, blocks, of_prefixes, reference_of_prefixes};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

fn spec(length: Option<u8>, prefixes: &[&str], excluded: &[&str]) -> PrefixPoolSpec {
    PrefixPoolSpec {
        prefixes: texts(prefixes),
        allocation_prefix_length: length,
        excluded_prefixes: texts(excluded),
        ..PrefixPoolSpec::default()
    }
}

fn with_gateway(gateway: &str, spec: PrefixPoolSpec) -> PrefixPoolSpec {
    PrefixPoolSpec { gateway: Some(gateway.into()), ..spec }
}

#[track_caller]
fn assert_refused(refused: Result<Plan, Problem>, pointer: &str, part: &str) {
    let problem = refused.unwrap_err();
    assert_eq!((problem.code, &*problem.errors[0].pointer), (Code::InvalidField, pointer), "{problem}");
    assert!(problem.detail.contains(part), "{problem}");
}

/// First free blocks in the order of the plan's ranges, without those in use.
fn first_blocks(plan: &Plan, length: u8, used: &[&str], count: usize) -> Vec<String> {
    let family = plan.span.family();
    let used: Vec<AddressRange> = used.iter().map(|range| range.parse().unwrap()).collect();
    let mut free = allocatable(plan).minus(&RangeSet::new(family, &used));
    let size = 1u128 << (family.bits() - length);
    let mut found = Vec::new();
    while found.len() < count {
        let starts = free.ranges().map(|range| (range.first().next_multiple_of(size), range.last()));
        let Some((first, _)) = { starts }.find(|(first, last)| first + (size - 1) <= *last) else { break };
        let address = |number| family.address(number);
        found.push(format!("{}/{length}", address(first)));
        let block = AddressRange::new(address(first), address(first + (size - 1))).unwrap();
        free = free.minus(&RangeSet::new(family, &[block]));
    }
    found
}

#[test]
fn b4_prefix_pools() {
    let merged = &["fd00::/63", "fd00::/62", "fd00:0:0:8::/62"];
    for (spec, used, first, total) in [
        (spec(None, &["fd00::/62"], &[]), &[][..], &["fd00::/64", "fd00:0:0:1::/64"][..], 4),
        (spec(None, &["fd00::/62"], &[]), &["fd00::/64"], &["fd00:0:0:1::/64"], 4),
        (spec(None, merged, &[]), &[], &["fd00::/64"], 8),
        (spec(None, merged, &[]), &["fd00::/62"], &["fd00:0:0:8::/64"], 8),
        (
            // The gateway excludes no block.
            with_gateway("fd00::1", spec(None, &["fd00::/62"], &["fd00:0:0:1::/64"])),
            &[],
            &["fd00::/64", "fd00:0:0:2::/64", "fd00:0:0:3::/64"],
            3,
        ),
        (spec(Some(56), &["fd06::/48"], &[]), &[], &["fd06::/56", "fd06:0:0:100::/56"], 256),
        (spec(None, &["fd00::/63"], &[]), &[], &["fd00::/64", "fd00:0:0:1::/64"], 2),
        (spec(None, &["fd00::/64"], &[]), &["fd00::/64"], &[], 1),
        // One excluded address excludes its block.
        (spec(None, &["fd00::/62"], &["fd00::1"]), &[], &["fd00:0:0:1::/64"], 3),
        (spec(None, &["fd00::/62"], &["fd00::1-fd00:0:0:2::"]), &[], &["fd00:0:0:3::/64"], 1),
    ] {
        let plan = of_prefixes(&spec).unwrap();
        let length = spec.allocation_prefix_length.unwrap_or(64);
        assert_eq!(plan.total, total, "{spec:?}");
        assert_eq!(first_blocks(&plan, length, used, first.len().max(1)), first, "{spec:?}");
    }
}

/// A pool has a single subnet, which contains all prefixes.
#[test]
fn b4_disjoint_prefixes_are_of_one_subnet() {
    for (prefixes, first, total, subnet) in [
        (["fd00:0:0:1::/64", "fd10::/48"], ["fd00:0:0:1::/64", "fd10::/64"], 65_537, "fd00::/11"),
        (["fd10::/48", "fd00:0:0:1::/64"], ["fd00:0:0:1::/64", "fd10::/64"], 65_537, "fd00::/11"),
        (["fd00::/64", "fd01::/64"], ["fd00::/64", "fd01::/64"], 2, "fd00::/15"),
    ] {
        let plan = of_prefixes(&spec(None, &prefixes, &[])).unwrap();
        assert_eq!(first_blocks(&plan, 64, &[], 2), first);
        assert_eq!((plan.total, plan.subnet.to_string()), (total, subnet.to_owned()));
    }
    let two = "is not inside one subnet";
    assert_refused(of_prefixes(&spec(None, &["fc00::/64", "fd00::/64"], &[])), "/prefixes", two);
}

#[test]
fn b4_webhook_refusals() {
    let not_cidr = "provided entry is not a valid IPv6 CIDR";
    let too_long = "CIDR prefix length must be <= allocationPrefixLength";
    let bounds = "allocationPrefixLength must be between 1 and";
    let one = &["fd00::/64"];
    for (spec, pointer, part) in [
        (PrefixPoolSpec::default(), "/prefixes", "prefixes is required"),
        (spec(None, &["fd00::/64", "fd00::1"], &[]), "/prefixes/1", not_cidr),
        (spec(None, &["fd00::1-fd00::2"], &[]), "/prefixes/0", not_cidr),
        (spec(None, &["garbage"], &[]), "/prefixes/0", not_cidr),
        (spec(None, &["fd00::/129"], &[]), "/prefixes/0", not_cidr),
        (spec(None, &["fd00::1/64"], &[]), "/prefixes/0", "CIDR must be network-aligned"),
        (spec(None, &["fd00::/64", "fd00::/65"], &[]), "/prefixes/1", &format!("{too_long} (64)")),
        (spec(Some(48), one, &[]), "/prefixes/0", &format!("{too_long} (48)")),
        (spec(None, &["fd00::/64", "10.0.0.0/24"], &[]), "/prefixes/1", "only IPv6 prefixes are supported"),
        (with_gateway("10.0.0.1", spec(None, one, &[])), "/gateway", "provided gateway must be IPv6"),
        (with_gateway("invalid", spec(None, one, &[])), "/gateway", "provided gateway is invalid"),
        (
            spec(None, one, &["fd00::1", "10.0.0.1"]),
            "/excludedPrefixes/1",
            "only IPv6 excluded prefixes are supported",
        ),
        (
            spec(None, one, &["garbage"]),
            "/excludedPrefixes/0",
            "provided entry is not a valid IP, range, nor CIDR",
        ),
        (spec(Some(0), one, &[]), "/allocationPrefixLength", bounds),
        (spec(Some(129), one, &[]), "/allocationPrefixLength", bounds),
        // Unlike the in-cluster provider, ipamd has no default length for IPv4.
        (spec(None, &["10.0.0.0/24"], &[]), "/allocationPrefixLength", "is required for IPv4"),
        (spec(Some(64), &["10.0.0.0/24"], &[]), "/allocationPrefixLength", bounds),
        (spec(Some(24), &["10.0.0.0/24"], &["fd00::1"]), "/excludedPrefixes/0", "only IPv4 excluded"),
        (
            with_gateway("fd00::1", spec(Some(24), &["10.0.0.0/24"], &[])),
            "/gateway",
            "provided gateway must be IPv4",
        ),
    ] {
        assert_refused(of_prefixes(&spec), pointer, part);
    }
}

#[test]
fn b4_webhook_accepts() {
    let host = |gateway: &str| with_gateway(gateway, spec(Some(128), &["fd40::/64"], &[]));
    for (spec, total) in [
        (spec(Some(56), &["fd00::/48"], &[]), 256),
        (spec(Some(64), &["fd00::/48"], &[]), 65_536),
        (spec(Some(96), &["fd00::/48"], &[]), 1 << 48),
        (spec(Some(128), &["fd00::/48"], &[]), i64::MAX.unsigned_abs()),
        (spec(Some(128), &["fd00::7/128"], &[]), 1),
        // The in-cluster provider only warns here; blocks of one address are as useful as others.
        (host("fd40::1"), i64::MAX.unsigned_abs()),
        (with_gateway("fd51::1", spec(None, &["fd50::/64"], &[])), 1),
    ] {
        assert_eq!(of_prefixes(&spec).unwrap().total, total, "{spec:?}");
    }
}

#[test]
fn ipv4_prefixes_have_a_length() {
    let spec = with_gateway("10.0.0.1", spec(Some(24), &["10.1.0.0/16", "10.0.0.0/16"], &["10.0.3.9"]));
    let plan = of_prefixes(&spec).unwrap();
    let range = |text: &str| text.parse::<AddressRange>().unwrap();
    assert_eq!(
        plan,
        Plan {
            span: range("10.0.0.0/15"),
            subnet: "10.0.0.0/15".parse().unwrap(),
            ranges: vec![range("10.0.0.0/15")],
            exclude: vec![range("10.0.3.9")],
            cooling_ms: None,
            total: 511,
        }
    );
}

#[test]
fn a_reference_and_prefixes_exclude_each_other() {
    let web = Name::new("web").unwrap();
    let pool_ref = Some(PoolReference { name: web.clone() });
    let alone = PrefixPoolSpec { pool_ref: pool_ref.clone(), ..PrefixPoolSpec::default() };
    assert_eq!(reference_of_prefixes(&alone), Ok(Some(&web)));
    assert_refused(of_prefixes(&alone), "/prefixes", "prefixes is required");
    assert_eq!(reference_of_prefixes(&spec(None, &["fd00::/64"], &[])), Ok(None));
    for both in [spec(None, &["fd00::/64"], &[]), spec(None, &[], &["fd00::1"])] {
        let both = PrefixPoolSpec { pool_ref: pool_ref.clone(), ..both };
        assert_refused(of_prefixes(&both), "/poolRef", "exclude each other");
    }
}

#[test]
fn the_largest_spec_makes_no_more_ranges_than_entries() {
    let prefixes: Vec<String> = (0..RANGES_MAX).map(|n| format!("fd00:0:{:x}::/48", n * 2)).collect();
    let excluded = prefixes.iter().map(|prefix| prefix.replace("::/48", ":8::/64")).collect();
    let large = PrefixPoolSpec { prefixes, excluded_prefixes: excluded, ..PrefixPoolSpec::default() };
    let plan = of_prefixes(&large).unwrap();
    assert_eq!((plan.ranges.len(), plan.exclude.len()), (RANGES_MAX, RANGES_MAX));
    assert_eq!(plan.total, RANGES_MAX as u64 * 65_535);
    assert_eq!(blocks::count(&allocatable(&plan), 128), u128::from(plan.total) << 64);

    let mut longer = large.clone();
    longer.prefixes.push("fd00::/64".into());
    assert_refused(of_prefixes(&longer), "/prefixes", "at most 1024");
    let mut longer = large;
    longer.excluded_prefixes.push("fd00::".into());
    assert_refused(of_prefixes(&longer), "/excludedPrefixes", "at most 1024");
    let count = BODY_BYTES_MAX / r#""::/0","#.len();
    let body = PrefixPoolSpec { prefixes: vec!["::/0".into(); count], ..PrefixPoolSpec::default() };
    assert_refused(of_prefixes(&body), "/prefixes", "at most 1024 are read");
}
