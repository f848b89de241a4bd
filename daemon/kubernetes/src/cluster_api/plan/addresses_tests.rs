//! Vectors of the in-cluster provider for pools of addresses (part B4 of the reference), and limits.

use ipam_api::address::{AddressRange, number};
use ipam_api::cluster_api::{IpPoolSpec, PoolReference};
use ipam_api::limits::{BODY_BYTES_MAX, COOLING_MS_MAX, RANGES_MAX};
use ipam_api::{Code, Name, Problem, RangeSet};

use super::addresses::{addresses, sets, subnet_of};
use super::{Plan, Sets, of_addresses, reference_of_addresses};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

fn spec(prefix: u8, gateway: &str, addresses: &[&str]) -> IpPoolSpec {
    IpPoolSpec {
        addresses: texts(addresses),
        prefix: Some(prefix),
        gateway: Some(gateway.into()).filter(|_| !gateway.is_empty()),
        ..IpPoolSpec::default()
    }
}

fn excluding(prefix: u8, gateway: &str, addresses: &[&str], excluded: &[&str]) -> IpPoolSpec {
    IpPoolSpec { excluded_addresses: texts(excluded), ..spec(prefix, gateway, addresses) }
}

fn reserved(spec: IpPoolSpec) -> IpPoolSpec {
    IpPoolSpec { allocate_reserved_ip_addresses: true, ..spec }
}

/// Allocatable addresses of a plan, as the machine computes them.
pub(super) fn allocatable(plan: &Plan) -> RangeSet {
    let family = plan.span.family();
    RangeSet::new(family, &plan.ranges).minus(&RangeSet::new(family, &plan.exclude))
}

/// Sets of a spec, with entries outside of its subnet.
fn sets_of(spec: &IpPoolSpec) -> Sets {
    let (entries, span) = addresses(spec).unwrap();
    sets(spec, &entries, subnet_of(spec, &span).unwrap()).unwrap()
}

fn shown(set: &RangeSet) -> String {
    format!("{set:?}")
}

/// Checks that a spec is refused at a field, with a detail that contains `part`.
#[track_caller]
fn assert_refused(refused: Result<Plan, Problem>, pointer: &str, part: &str) {
    let problem = refused.unwrap_err();
    assert_eq!((problem.code, &*problem.errors[0].pointer), (Code::InvalidField, pointer), "{problem}");
    assert!(problem.detail.contains(part), "{problem}");
}

#[test]
fn b4_pool_sets_ipv4() {
    let gateway = "192.168.0.1";
    let some = ["192.168.0.3-192.168.0.4", "192.168.0.6/31"];
    let with = |prefix: u8, more: &[&str]| spec(prefix, gateway, &[more, &some].concat());
    for (spec, count, set) in [
        (with(24, &["192.168.0.2"]), 5, "[192.168.0.2-192.168.0.4, 192.168.0.6-192.168.0.7]"),
        (spec(0, gateway, &["192.168.0.3-192.168.0.10"]), 8, "[192.168.0.3-192.168.0.10]"),
        (with(24, &["192.168.0.0"]), 4, "[192.168.0.3-192.168.0.4, 192.168.0.6-192.168.0.7]"),
        (
            with(16, &["192.168.1.0", "192.168.0.255", "192.168.255.255"]),
            6,
            "[192.168.0.3-192.168.0.4, 192.168.0.6-192.168.0.7, 192.168.0.255-192.168.1.0]",
        ),
        (with(24, &["192.168.0.1"]), 4, "[192.168.0.3-192.168.0.4, 192.168.0.6-192.168.0.7]"),
        (
            reserved(with(24, &["192.168.0.0", "192.168.0.1", "192.168.0.255"])),
            6,
            "[192.168.0.0, 192.168.0.3-192.168.0.4, 192.168.0.6-192.168.0.7, 192.168.0.255]",
        ),
        (
            excluding(
                24,
                gateway,
                &["192.168.0.0-192.168.0.10"],
                &["192.168.0.5", "192.168.0.6", "192.168.0.7"],
            ),
            6,
            "[192.168.0.2-192.168.0.4, 192.168.0.8-192.168.0.10]",
        ),
        (
            excluding(24, gateway, &["192.168.0.0/24"], &["192.168.0.128/25"]),
            126,
            "[192.168.0.2-192.168.0.127]",
        ),
        (
            excluding(24, gateway, &["192.168.0.0/24"], &["192.168.0.2-192.168.0.20"]),
            234,
            "[192.168.0.21-192.168.0.254]",
        ),
    ] {
        let plan = of_addresses(&spec).unwrap();
        assert_eq!((plan.total, shown(&allocatable(&plan))), (count, set.to_owned()), "{spec:?}");
    }
}

#[test]
fn b4_pool_sets_ipv6() {
    let some = ["fd01::3-fd01::4", "fd01::6/127"];
    let with = |prefix: u8, more: &[&str]| spec(prefix, "fd01::1", &[more, &some].concat());
    for (spec, count, set) in [
        (with(120, &["fd01::2"]), 5, "[fd01::2-fd01::4, fd01::6-fd01::7]"),
        (with(120, &["fd01::0"]), 4, "[fd01::3-fd01::4, fd01::6-fd01::7]"),
        (with(120, &["fd01::1"]), 4, "[fd01::3-fd01::4, fd01::6-fd01::7]"),
    ] {
        let plan = of_addresses(&spec).unwrap();
        assert_eq!((plan.total, shown(&allocatable(&plan))), (count, set.to_owned()), "{spec:?}");
    }
}

/// The webhook refuses both pools, whose last entry is outside of the subnet. Their sets are vectors, and
/// equal the sets of the same addresses in a larger subnet.
#[test]
fn b4_pool_sets_ipv6_outside_of_the_subnet() {
    let some = ["fd01::3-fd01::4", "fd01::6/127", "fd01::ffff:ffff"];
    let with = |prefix: u8, more: &[&str]| spec(prefix, "fd01::1", &[more, &some].concat());
    for (mut spec, outside, count, set) in [
        (
            with(112, &["fd01::ffff", "fd01::1:0"]),
            "/addresses/1",
            7,
            "[fd01::3-fd01::4, fd01::6-fd01::7, fd01::ffff-fd01::1:0, fd01::ffff:ffff]",
        ),
        (
            reserved(with(120, &["fd01::0", "fd01::1"])),
            "/addresses/4",
            6,
            "[fd01::, fd01::3-fd01::4, fd01::6-fd01::7, fd01::ffff:ffff]",
        ),
    ] {
        let set_alone = sets_of(&spec).allocatable();
        assert_eq!((set_alone.size(), shown(&set_alone)), (u128::from(count), set.to_owned()));
        assert_refused(
            of_addresses(&spec),
            outside,
            "provided address belongs to a different subnet than others",
        );
        spec.prefix = Some(96);
        let plan = of_addresses(&spec).unwrap();
        assert_eq!((plan.total, shown(&allocatable(&plan))), (count, set.to_owned()), "{spec:?}");
    }
}

#[test]
fn b4_first_free() {
    for (addresses, used, first) in [
        (&["10.0.0.10-10.0.0.20"][..], &[][..], Some("10.0.0.10")),
        (&["10.0.0.10-10.0.0.20"], &["10.0.0.10-10.0.0.11"], Some("10.0.0.12")),
        (&["10.0.0.10-10.0.0.20"], &["10.0.0.10-10.0.0.19"], Some("10.0.0.20")),
        (&["10.0.0.10-10.0.0.20"], &["10.0.0.10-10.0.0.20"], None),
        (&["10.0.1.10"], &[], Some("10.0.1.10")),
        (&["10.0.1.10"], &["10.0.1.10"], None),
        (&["10.0.0.10-10.0.0.15", "10.0.0.20"], &["10.0.0.10-10.0.0.15"], Some("10.0.0.20")),
        (&["10.0.0.20", "10.0.0.10-10.0.0.15"], &["10.0.0.10-10.0.0.15"], Some("10.0.0.20")),
        (&["10.0.0.10-10.0.0.15", "10.0.0.20"], &["10.0.0.10-10.0.0.15", "10.0.0.20"], None),
    ] {
        assert_eq!(first_free(&spec(24, "", addresses), used, 1), first.into_iter().collect::<Vec<_>>());
    }
}

/// First free addresses in the order of the plan's ranges.
fn first_free(spec: &IpPoolSpec, used: &[&str], count: usize) -> Vec<String> {
    let plan = of_addresses(spec).unwrap();
    let used: Vec<AddressRange> = used.iter().map(|range| range.parse().unwrap()).collect();
    let free = allocatable(&plan).minus(&RangeSet::new(plan.span.family(), &used));
    let numbers = (0..count).filter_map(|n| free.nth(n as u128));
    numbers.map(|number| plan.span.family().address(number).to_string()).collect()
}

#[test]
fn b4_claims() {
    let every: Vec<String> = (1..=254).filter(|n| *n != 2).map(|n| format!("10.0.0.{n}")).collect();
    let every: Vec<&str> = every.iter().map(String::as_str).collect();
    for (spec, free) in [
        (spec(24, "10.0.0.2", &["10.0.0.1-10.0.0.254"]), &every[..]),
        (spec(24, "10.0.1.1", &["10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.255"]), &["10.0.1.2"]),
        (
            excluding(24, "10.1.1.1", &["10.1.1.0/24"], &["10.1.1.2-10.1.1.5", "10.1.1.7"]),
            &["10.1.1.6", "10.1.1.8", "10.1.1.9"],
        ),
        (spec(24, "10.0.1.1", &["10.0.1.3", "10.0.1.2"]), &["10.0.1.2", "10.0.1.3"]),
        (spec(24, "10.0.0.1", &["10.0.0.50", "10.0.0.128"]), &["10.0.0.50", "10.0.0.128"]),
        (spec(24, "10.0.0.1", &["10.0.0.2-10.0.0.254"]), &["10.0.0.2", "10.0.0.3"]),
    ] {
        assert_eq!(first_free(&spec, &[], free.len()), free);
        assert_eq!(of_addresses(&spec).unwrap().subnet.prefix_len(), 24);
    }
    let few = spec(24, "10.0.1.1", &["10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.255"]);
    assert_eq!(of_addresses(&few).unwrap().total, 1);
}

#[test]
fn b4_status_totals() {
    for (prefix, addresses, gateway, total) in [
        (24, "10.0.0.10-10.0.0.20", "", 11),
        (24, "10.0.0.10-10.0.0.20", "10.0.0.10", 10),
        (24, "10.0.0.10-10.0.0.20", "10.0.0.1", 11),
        (24, "10.0.0.0-10.0.0.1", "10.0.0.2", 1),
        (24, "10.0.0.254-10.0.0.255", "10.0.0.1", 1),
        (120, "fe80::ffff", "fe80::a", 1),
    ] {
        assert_eq!(of_addresses(&spec(prefix, gateway, &[addresses])).unwrap().total, total, "{addresses}");
    }
}

#[test]
fn b4_out_of_range() {
    for (before, used, after, outside) in [
        (&["10.0.0.10-10.0.0.20"][..], 5, &["10.0.0.13-10.0.0.20"][..], "[10.0.0.10-10.0.0.12]"),
        (&["10.0.0.0-10.0.0.255"], 4, &["10.0.0.1-10.0.0.255"], "[10.0.0.0]"),
        (&["10.0.0.0-10.0.0.255"], 5, &["10.0.0.0", "10.0.0.2-10.0.0.255"], "[10.0.0.0]"),
        (&["10.0.0.251-10.0.0.255"], 5, &["10.0.0.251-10.0.0.254"], "[10.0.0.255]"),
    ] {
        let used = first_free(&reserved(spec(24, "10.0.0.1", before)), &[], used);
        let used: Vec<AddressRange> = used.iter().map(|address| address.parse().unwrap()).collect();
        let plan = of_addresses(&spec(24, "10.0.0.1", after)).unwrap();
        let left = RangeSet::new(plan.span.family(), &used).minus(&allocatable(&plan));
        assert_eq!(shown(&left), outside, "{after:?}");
    }
}

#[test]
fn b4_webhook_refusals() {
    let three = |last| spec(24, "10.0.0.1", &["10.0.0.25", "10.0.0.26", last]);
    let two = |first, last| spec(24, "10.0.0.1", &[first, last]);
    let range = "10.0.0.10-10.0.0.20";
    let other = "provided address belongs to a different subnet than others";
    let not_address = "provided address is not a valid IP, range, nor CIDR";
    let mixed_gateway = "provided gateway and addresses are of mixed IP families";
    let mixed_excluded = "addresses and excluded addresses are of mixed IP families";
    for (spec, pointer, part) in [
        (spec(24, "10.0.0.1", &[]), "/addresses", "addresses is required"),
        (spec(24, "invalid", &["10.0.0.25"]), "/gateway", "invalid"),
        (spec(24, "", &["10.0.0.25"]), "", ""),
        (three("10.0.1.27"), "/addresses/2", other),
        (three("garbage"), "/addresses/2", not_address),
        (IpPoolSpec { prefix: None, ..three(range) }, "/prefix", "a valid prefix is required"),
        (spec(33, "10.0.0.1", &[range]), "/prefix", "provided prefix is not valid"),
        (spec(255, "fd00::1", &["fd00::2"]), "/prefix", "provided prefix is not valid"),
        (spec(24, "10.0.0.1", &["10.0.0.10-10.0.0.5"]), "/addresses/0", not_address),
        (spec(24, "10.0.0.1", &["10.0.0.10/33"]), "/addresses/0", not_address),
        // The lowest address determines the subnet, not the first entry.
        (two("10.0.1.0", range), "/addresses/0", other),
        (two(range, "10.0.1.0"), "/addresses/1", other),
        (two("10.0.0.255-10.0.1.5", "10.0.1.10"), "/addresses/0", other),
        (two(range, "10.0.0.250-10.0.1.5"), "/addresses/1", other),
        (two("10.0.1.0/24", range), "/addresses/0", other),
        (two(range, "10.0.1.0/24"), "/addresses/1", other),
        (two("10.0.0.0/23", range), "/addresses/0", other),
        (spec(24, "fd00::1", &[range]), "/gateway", mixed_gateway),
        (spec(24, "10.0.0.1", &["fd00::1-fd00::5"]), "/gateway", mixed_gateway),
        (two(range, "fd00::1"), "/addresses/1", "provided addresses are of mixed IP families"),
        (
            excluding(24, "10.0.0.1", &[range], &["10.0.0.11", "fd00::1"]),
            "/excludedAddresses/1",
            mixed_excluded,
        ),
        (excluding(24, "10.0.0.1", &[range], &["fd00::1"]), "/excludedAddresses/0", mixed_excluded),
        (excluding(64, "fd00::1", &["fd00::2"], &["10.0.0.1"]), "/excludedAddresses/0", mixed_excluded),
        (excluding(24, "", &[range], &["garbage"]), "/excludedAddresses/0", not_address),
    ] {
        if pointer.is_empty() {
            of_addresses(&spec).unwrap();
        } else {
            assert_refused(of_addresses(&spec), pointer, part);
        }
    }
}

#[test]
fn b4_numbers_that_the_types_refuse() {
    for (field, value) in [("prefix", -1), ("prefix", 9999), ("addressReuseGracePeriodSeconds", -1)] {
        let body = serde_json::json!({"addresses": ["10.0.0.1"], field: value});
        serde_json::from_value::<IpPoolSpec>(body).unwrap_err();
    }
}

#[test]
fn b4_webhook_accepts() {
    for (spec, subnet) in [
        (spec(28, "10.0.0.24", &["10.0.0.25", "10.0.0.26", "10.0.0.27"]), "10.0.0.16/28"),
        (excluding(28, "", &["10.0.0.25", "10.0.0.26"], &["10.0.0.23", "10.0.0.24"]), "10.0.0.16/28"),
        (spec(28, "fe01::1", &["fe01::2", "fe01::3-fe01::5", "fe01::1:1/126"]), "fe01::/28"),
        (spec(0, "10.0.0.1", &["10.0.0.10-10.0.0.20"]), "10.0.0.0/8"),
        // The gateway may lie outside of the subnet (#168).
        (spec(24, "192.168.7.1", &["10.0.0.0/24"]), "10.0.0.0/24"),
    ] {
        assert_eq!(of_addresses(&spec).unwrap().subnet, subnet.parse().unwrap(), "{spec:?}");
    }
}

#[test]
fn b4_conversions_of_v1alpha1() {
    for (addresses, prefix, total) in [("1.1.1.1-1.1.1.10", 28, 10), ("1.1.1.1-1.1.1.254", 24, 254)] {
        let plan = of_addresses(&spec(prefix, "", &[addresses])).unwrap();
        assert_eq!((plan.total, plan.subnet.prefix_len()), (total, prefix));
        assert_eq!((plan.span.to_string(), plan.exclude), (addresses.to_owned(), Vec::new()));
    }
}

#[test]
fn small_subnets_have_no_reserved_addresses() {
    for (prefix, addresses, total) in [
        (30, "10.0.0.0/30", 2),
        (31, "10.0.0.0/31", 2),
        (32, "10.0.0.0", 1),
        (126, "fd00::/126", 3),
        (127, "fd00::/127", 2),
        (128, "fd00::", 1),
    ] {
        assert_eq!(of_addresses(&spec(prefix, "", &[addresses])).unwrap().total, total, "{addresses}");
    }
}

#[test]
fn a_plan_has_its_parts() {
    let spec = IpPoolSpec {
        address_reuse_grace_period_seconds: Some(2),
        ..excluding(20, "10.0.7.7", &["10.0.7.0/24", "10.0.9.1", "10.0.8.0/24"], &["10.0.6.200-10.0.7.2"])
    };
    let plan = of_addresses(&spec).unwrap();
    let range = |text: &str| text.parse::<AddressRange>().unwrap();
    assert_eq!(
        plan,
        Plan {
            span: range("10.0.7.0-10.0.9.1"),
            subnet: "10.0.0.0/20".parse().unwrap(),
            ranges: vec![range("10.0.7.0-10.0.8.255"), range("10.0.9.1")],
            exclude: vec![range("10.0.7.0-10.0.7.2"), range("10.0.7.7")],
            cooling_ms: Some(2000),
            total: 509,
        }
    );
}

#[test]
fn a_prefix_below_that_of_ipamd_makes_its_largest_subnet() {
    // The reserved addresses belong to the spec's subnet.
    let plan = of_addresses(&spec(4, "", &["16.0.0.0-16.0.0.9", "16.255.255.255"])).unwrap();
    assert_eq!((plan.subnet.to_string(), plan.total), ("16.0.0.0/8".to_owned(), 10));
    let plan = of_addresses(&spec(8, "", &["16.0.0.0-16.0.0.9", "16.255.255.255"])).unwrap();
    assert_eq!(plan.total, 9);
    let two = "is not inside one subnet";
    assert_refused(of_addresses(&spec(4, "", &["16.0.0.9", "17.0.0.1"])), "/addresses", two);
    assert_refused(of_addresses(&spec(0, "", &["fc00::1", "fd01::1"])), "/addresses", two);
    assert_refused(of_addresses(&spec(0, "", &["::/0"])), "/addresses", two);
}

#[test]
fn the_grace_period_is_that_of_the_server_at_most() {
    let most = u32::try_from(COOLING_MS_MAX / 1000).unwrap();
    for (seconds, cooling_ms) in [(None, None), (Some(0), Some(0)), (Some(most), Some(COOLING_MS_MAX))] {
        let spec = IpPoolSpec { address_reuse_grace_period_seconds: seconds, ..spec(24, "", &["10.0.0.1"]) };
        assert_eq!(of_addresses(&spec).unwrap().cooling_ms, cooling_ms);
    }
    for seconds in [most + 1, u32::MAX] {
        let spec =
            IpPoolSpec { address_reuse_grace_period_seconds: Some(seconds), ..spec(24, "", &["10.0.0.1"]) };
        assert_refused(of_addresses(&spec), "/addressReuseGracePeriodSeconds", "at most 604800");
    }
}

#[test]
fn a_reference_and_addresses_exclude_each_other() {
    let web = Name::new("web").unwrap();
    let pool_ref = Some(PoolReference { name: web.clone() });
    let alone = IpPoolSpec { pool_ref: pool_ref.clone(), ..IpPoolSpec::default() };
    assert_eq!(reference_of_addresses(&alone), Ok(Some(&web)));
    assert_refused(of_addresses(&alone), "/addresses", "addresses is required");
    assert_refused(of_addresses(&IpPoolSpec::default()), "/addresses", "addresses is required");
    assert_eq!(reference_of_addresses(&spec(24, "", &["10.0.0.1"])), Ok(None));
    for both in [spec(24, "", &["10.0.0.1"]), excluding(24, "", &[], &["10.0.0.1"])] {
        let both = IpPoolSpec { pool_ref: pool_ref.clone(), ..both };
        assert_eq!(reference_of_addresses(&both).unwrap_err().errors[0].pointer, "/poolRef");
        assert_refused(of_addresses(&both), "/poolRef", "exclude each other");
    }
}

/// Entries of every second /112 of a /64, and of the addresses between them.
fn many(count: usize, offset: u128) -> Vec<String> {
    let first = number("fd00::".parse().unwrap()) + offset;
    let entry = |n: usize| first + (n as u128) * 0x2_0000;
    let range = |n: u128| {
        let address = |number| ipam_api::Family::V6.address(number);
        format!("{}-{}", address(n), address(n + 0xffff))
    };
    (0..count).map(|n| range(entry(n))).collect()
}

#[test]
fn the_largest_spec_makes_no_more_ranges_than_entries() {
    let large = IpPoolSpec {
        addresses: many(RANGES_MAX, 0),
        prefix: Some(64),
        excluded_addresses: many(RANGES_MAX - 1, 0x8000),
        ..IpPoolSpec::default()
    };
    let plan = of_addresses(&large).unwrap();
    assert_eq!((plan.ranges.len(), plan.exclude.len()), (RANGES_MAX, RANGES_MAX));
    let left = RANGES_MAX as u64 * 0x1_0000 - (RANGES_MAX as u64 - 1) * 0x8000 - 1;
    assert_eq!(plan.total, left);

    let mut longer = large.clone();
    longer.addresses.push("fd00::7".into());
    assert_refused(of_addresses(&longer), "/addresses", "at most 1024");
    let mut longer = large.clone();
    longer.excluded_addresses = many(RANGES_MAX + 1, 0x8000);
    assert_refused(of_addresses(&longer), "/excludedAddresses", "at most 1024");
    // One exclusion can cut each range, and the reserved address is one more.
    longer.excluded_addresses = many(RANGES_MAX, 0x8000);
    assert_refused(of_addresses(&longer), "/excludedAddresses", "1025 ranges");
    longer.excluded_addresses = texts(&["fd00::/64"]);
    let plan = of_addresses(&longer).unwrap();
    assert_eq!((plan.exclude.len(), plan.total), (RANGES_MAX, 0));
}

#[test]
fn a_body_of_the_largest_size_is_not_read_entry_by_entry() {
    let count = BODY_BYTES_MAX / r#""::1","#.len();
    let spec = IpPoolSpec { addresses: vec!["::1".into(); count], prefix: Some(64), ..IpPoolSpec::default() };
    assert_refused(of_addresses(&spec), "/addresses", "at most 1024 are read");
}

#[test]
fn a_huge_range_costs_as_much_as_an_address() {
    let huge = excluding(16, "fd00::1", &["fd00::/16"], &["fd00::/17", "fd00:ffff::/32"]);
    let plan = of_addresses(&huge).unwrap();
    assert_eq!((plan.ranges.len(), plan.exclude.len()), (1, 2));
    assert_eq!(plan.total, i64::MAX.unsigned_abs());
}
