//! Range of an object, and the subnet and the pool that follow from it.

use ipam_api::address::offset::has_offset;
use ipam_api::address::{number, parse_address};
use ipam_api::limits::NODE_POOL_PREFIX_V4_MIN;
use ipam_api::name::{Name, ObjectName};
use ipam_api::resource::{Pool, Subnet};
use ipam_api::{AddressRange, Code, Family, Problem, RangeSet, strict};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::octets::five_octets;

/// Spec of an object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[serde(default = "Name::default_name")]
    network: Name,
    range: Range,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    cidr: String,
    #[serde(default)]
    start: Option<String>,
    #[serde(default)]
    end: Option<String>,
    #[serde(default)]
    exclude: Vec<AddressRange>,
}

/// Addresses that an object describes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeRange {
    pub(crate) name: Name,
    pub(crate) network: Name,
    pub(crate) cidr: IpNet,
    /// CIDR of the object, if it has host bits.
    pub(crate) with_host_bits: Option<IpNet>,
    pub(crate) range: AddressRange,
    exclude: RangeSet,
}

impl NodeRange {
    /// Reads the spec of an object.
    ///
    /// # Errors
    /// Problem with the name or with a field.
    pub(super) fn read(name: &ObjectName, spec: Value) -> Result<Self, Problem> {
        let name = Name::new(name.as_str()).map_err(|problem| problem.at("/metadata/name"))?;
        let fields = match spec {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(Problem::new(Code::MalformedBody, "the spec must be an object")),
        };
        let Spec { network, range } = strict::from_object(fields)?;
        let written: IpNet = range.cidr.parse().map_err(|_| {
            Problem::new(Code::InvalidField, "range.cidr is not a CIDR such as 10.0.0.0/24").at("/range/cidr")
        })?;
        let cidr = written.trunc();
        let family = Family::of(cidr.addr());
        if family == Family::V4 && cidr.prefix_len() < NODE_POOL_PREFIX_V4_MIN {
            let why = format!(
                "{cidr} is shorter than /{NODE_POOL_PREFIX_V4_MIN}: the excluded addresses that end in .0 \
                 and .255 would exceed the limit of a pool"
            );
            return Err(Problem::new(Code::InvalidField, why).at("/range/cidr"));
        }
        let whole = AddressRange::of_cidr(cidr);
        let (low, high) = usable(cidr);
        let start = edge(range.start.as_deref(), cidr, low).map_err(|problem| problem.at("/range/start"))?;
        let end = edge(range.end.as_deref(), cidr, high).map_err(|problem| problem.at("/range/end"))?;
        let ends = AddressRange::new(family.address(start), family.address(end));
        let ends = ends.map_err(|problem| problem.at("/range/start"))?;
        debug_assert!(whole.contains(&ends));
        if let Some(other) = range.exclude.iter().find(|one| one.family() != family) {
            let why = format!("{other} is not of the family of {cidr}");
            return Err(Problem::new(Code::FamilyMismatch, why).at("/range/exclude"));
        }
        // An exclusion outside the range excludes nothing.
        let exclude = RangeSet::new(family, &range.exclude).intersection(&RangeSet::new(family, [&ends]));
        let with_host_bits = (written != cidr).then_some(written);
        Ok(Self { name, network, cidr, with_host_bits, range: ends, exclude })
    }

    /// Subnet of the object, for the case that no subnet has its CIDR.
    pub(super) fn subnet(&self, manager: &str) -> Result<Subnet, Problem> {
        from_json(json!({
            "name": self.name, "network": self.network, "cidr": self.cidr, "managed_by": manager,
        }))
    }

    /// Pool of the object. Addresses without an offset are excluded, so that they are never allocated.
    pub(super) fn pool(&self, subnet: &Name, manager: &str) -> Result<Pool, Problem> {
        let exclude: Vec<AddressRange> = self.exclude.union(&without_offset(self.range)).ranges().collect();
        from_json(json!({
            "name": self.name, "subnet": subnet, "network": self.network, "ranges": [self.range],
            "exclude": exclude, "managed_by": manager,
        }))
    }

    /// True if both have an address in common, or if the CIDR of one contains that of the other.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (&self.range, &other.range);
        let is_same = self.network == other.network && one.family() == two.family();
        let has_common = one.first() <= two.last() && two.first() <= one.last();
        let cidrs = self.cidr != other.cidr
            && (self.cidr.contains(&other.cidr.addr()) || other.cidr.contains(&self.cidr.addr()));
        is_same && (has_common || cidrs)
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// First and last address that hosts use by default: all but the ends of the CIDR.
fn usable(cidr: IpNet) -> (u128, u128) {
    let whole = AddressRange::of_cidr(cidr);
    let (first, last) = (whole.first(), whole.last());
    let has_edges = last - first >= 3;
    match (Family::of(cidr.addr()), has_edges) {
        (Family::V4, true) => (first + 1, last - 1),
        (Family::V6, true) => (first + 1, last),
        (_, false) => (first, last),
    }
}

/// Start or end of a range, as a number.
fn edge(text: Option<&str>, cidr: IpNet, default: u128) -> Result<u128, Problem> {
    let Some(text) = text else { return Ok(default) };
    let address = match parse_address(text) {
        Ok(address) => address,
        Err(problem) => return Err(five_octets(text, cidr).unwrap_or(problem)),
    };
    if cidr.contains(&address) {
        return Ok(number(address));
    }
    Err(Problem::new(Code::InvalidField, format!("{address} is outside {cidr}")))
}

/// Addresses of a range that have no offset.
fn without_offset(range: AddressRange) -> RangeSet {
    let family = range.family();
    if family == Family::V6 {
        return RangeSet::empty(family);
    }
    let blocks = range.first() / 256..=range.last() / 256;
    let ends = blocks.flat_map(|block| [block * 256, block * 256 + 255]);
    let ends = ends.filter(|end| (range.first()..=range.last()).contains(end));
    let ends: Vec<AddressRange> = ends.map(|end| AddressRange::single(family.address(end))).collect();
    debug_assert!(ends.iter().all(|end| !has_offset(end.first_address())));
    RangeSet::new(family, &ends)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(range: Value) -> Result<NodeRange, Problem> {
        NodeRange::read(&ObjectName::new("traffic-1").unwrap(), json!({"range": range}))
    }

    fn excluded(range: Value) -> Vec<String> {
        let pool = read(range).unwrap().pool(&Name::new("lan").unwrap(), "m").unwrap();
        pool.exclude.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cidr_with_host_bits_is_tolerated_and_the_canonical_one_is_used() {
        let range = json!({"cidr": "10.10.11.0/16", "start": "10.10.11.4", "end": "10.10.12.10"});
        let range = read(range).unwrap();
        assert_eq!(
            (range.cidr.to_string(), range.with_host_bits.is_some()),
            ("10.10.0.0/16".to_owned(), true)
        );
        assert_eq!(range.subnet("m").unwrap().cidr.to_string(), "10.10.0.0/16");
    }

    #[test]
    fn addresses_without_an_offset_are_excluded_and_ipv6_has_none() {
        let range = json!({"cidr": "10.10.0.0/16", "start": "10.10.11.4", "end": "10.10.12.10",
                           "exclude": ["10.10.11.5", "10.10.12.7", "10.10.99.0/24"]});
        assert_eq!(excluded(range), ["10.10.11.5", "10.10.11.255-10.10.12.0", "10.10.12.7"]);
        let range = json!({"cidr": "2001:db8::/116", "start": "2001:db8::f", "exclude": ["2001:db8::1f"]});
        assert_eq!(excluded(range), ["2001:db8::1f"]);
        let all = excluded(json!({"cidr": "10.0.0.0/15"}));
        assert_eq!(all.len(), 511, "the largest pool is within the limit of exclusions");
        let longest = excluded(json!({"cidr": "10.0.0.0/15", "start": "10.0.0.0", "end": "10.1.255.255"}));
        assert!(longest.len() <= ipam_api::limits::RANGES_MAX);
    }

    #[test]
    fn each_mistake_names_its_field() {
        for (range, pointer, detail) in [
            (json!({}), "/range/cidr", "missing"),
            (json!({"cidr": "x"}), "/range/cidr", "not a CIDR"),
            (json!({"cidr": "10.0.0.0/14"}), "/range/cidr", "shorter than /15"),
            (
                json!({"cidr": "10.10.11.0/24", "end": "10.10.10.11.10"}),
                "/range/end",
                "10.10.10.11.10 has five octets; did you mean 10.10.11.10?",
            ),
            (json!({"cidr": "10.0.0.0/24", "start": "10.0.1.1"}), "/range/start", "outside 10.0.0.0/24"),
            (
                json!({"cidr": "10.0.0.0/24", "start": "10.0.0.9", "end": "10.0.0.1"}),
                "/range/start",
                "reversed",
            ),
            (json!({"cidr": "10.0.0.0/24", "exclude": ["::1"]}), "/range/exclude", "family"),
            (json!({"cidr": "10.0.0.0/24", "exclude": ["10.0.0.9/24"]}), "/range/exclude/0", "host bits"),
            (json!({"cidr": "10.0.0.0/24", "ende": "10.0.0.9"}), "/range/ende", "did you mean"),
        ] {
            let problem = read(range.clone()).unwrap_err();
            let at = problem.errors.first().map_or("", |error| &error.pointer);
            assert_eq!(at, pointer, "{range}: {problem}");
            assert!(format!("{} {}", problem.detail, problem.help).contains(detail), "{range}: {problem:?}");
        }
    }

    #[test]
    fn ranges_overlap_by_their_addresses_or_their_subnets() {
        let of = |cidr: &str, start: &str, end: &str| {
            read(json!({"cidr": cidr, "start": start, "end": end})).unwrap()
        };
        let one = of("10.0.0.0/24", "10.0.0.1", "10.0.0.9");
        assert!(one.overlaps(&of("10.0.0.0/24", "10.0.0.9", "10.0.0.12")));
        assert!(!one.overlaps(&of("10.0.0.0/24", "10.0.0.10", "10.0.0.12")));
        assert!(
            one.overlaps(&of("10.0.0.0/16", "10.0.9.10", "10.0.9.12")),
            "subnets of a network are disjoint"
        );
        assert!(!one.overlaps(&of("10.0.1.0/24", "10.0.1.10", "10.0.1.12")));
    }

    proptest! {
        #[test]
        fn any_range_is_read_or_refused_and_its_pool_is_within_its_ends(
            base in any::<u32>(), prefix in 0_u8..=33, start in any::<u32>(), end in "[0-9./:a-f]{0,20}",
            near in any::<bool>(), exclude in proptest::collection::vec("[0-9./:-]{0,12}", 0..4),
        ) {
            let address = |number: u32| std::net::Ipv4Addr::from(number);
            let start = if near { base.saturating_add(start % 512) } else { start };
            let mut range = json!({
                "cidr": format!("{}/{prefix}", address(base)), "start": address(start), "exclude": exclude,
            });
            if !near {
                range["end"] = end.into();
            }
            if let Ok(read) = read(range) {
                let pool = read.pool(&Name::new("lan").unwrap(), "m").unwrap();
                prop_assert!(pool.exclude.iter().all(|one| read.range.contains(one)));
                prop_assert!(AddressRange::of_cidr(read.cidr).contains(&read.range));
            }
        }
    }
}
