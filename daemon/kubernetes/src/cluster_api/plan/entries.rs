//! Lists of addresses, ranges and CIDRs in the spec of a pool.

use std::net::IpAddr;

use ipam_api::address::{AddressRange, parse_address};
use ipam_api::limits::RANGES_MAX;
use ipam_api::name::shown;
use ipam_api::{Code, Family, Problem};
use ipnet::{IpNet, Ipv4Net};

use super::refusal;

/// Shortest prefix of a CIDR whose addresses are all IPv4-mapped (RFC 4291 §2.5.5.2).
const MAPPED_PREFIX_LENGTH: u8 = 96;

/// Reads each entry of a list. A problem names the entry, and begins with `wrong`.
pub(super) fn read<T>(
    texts: &[String],
    field: &str,
    wrong: &str,
    one: fn(&str) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    if texts.len() > RANGES_MAX {
        let detail = format!("the list has {} entries, and at most {RANGES_MAX} are read", texts.len());
        return Err(refusal(detail, field));
    }
    let entries = texts.iter().enumerate().map(|(index, text)| {
        one(text).map_err(|problem| refusal(format!("{wrong}: {}", problem.detail), at(field, index)))
    });
    entries.collect()
}

/// JSON pointer of an entry.
pub(super) fn at(field: &str, index: usize) -> String {
    format!("{field}/{index}")
}

/// Index of the first entry that isn't of this family.
pub(super) fn odd_family(entries: &[AddressRange], family: Family) -> Option<usize> {
    entries.iter().position(|entry| entry.family() != family)
}

/// Smallest range with `first` and all entries, which are of its family.
pub(super) fn span(first: AddressRange, entries: &[AddressRange]) -> AddressRange {
    let lowest = entries.iter().map(AddressRange::first_address).min();
    let highest = entries.iter().map(AddressRange::last_address).max();
    let both = lowest.zip(highest);
    both.and_then(|(lowest, highest)| AddressRange::new(lowest, highest).ok()).unwrap_or(first)
}

/// Addresses of an entry: one address, a range `A-B`, or a CIDR. Host bits of a CIDR are ignored.
pub(super) fn range(text: &str) -> Result<AddressRange, Problem> {
    match text.split_once('-') {
        Some((first, last)) => AddressRange::new(parse_address(first)?, parse_address(last)?),
        None if text.contains('/') => cidr(text).map(AddressRange::of_cidr),
        None => parse_address(text).map(AddressRange::single),
    }
}

/// CIDR, possibly with host bits. A CIDR of IPv4-mapped addresses is an IPv4 CIDR, as for single addresses.
pub(super) fn cidr(text: &str) -> Result<IpNet, Problem> {
    let net = text.parse::<IpNet>().map_err(|_| {
        Problem::new(Code::InvalidField, format!("{} is not a CIDR such as 10.0.0.0/24", shown(text)))
    })?;
    let mapped = match net.addr() {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => address.to_ipv4_mapped(),
    };
    let length = net.prefix_len().checked_sub(MAPPED_PREFIX_LENGTH);
    let plain = mapped.zip(length).and_then(|(address, length)| Ipv4Net::new(address, length).ok());
    Ok(plain.map_or(net, IpNet::V4))
}

/// Address of a gateway; none for an empty text. A gateway of another family is refused with `odd`.
pub(super) fn gateway(text: Option<&str>, family: Family, odd: &str) -> Result<Option<IpAddr>, Problem> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let address = parse_address(text)
        .map_err(|problem| refusal(format!("provided gateway is invalid: {}", problem.detail), "/gateway"))?;
    if Family::of(address) != family {
        return Err(refusal(odd, "/gateway"));
    }
    Ok(Some(address))
}

#[cfg(test)]
mod tests {
    use ipam_api::RangeSet;

    use super::super::saturated;
    use super::*;

    const WRONG: &str = "wrong";

    fn entries(texts: &[&str]) -> Result<Vec<AddressRange>, Problem> {
        let texts: Vec<String> = texts.iter().map(|&text| text.into()).collect();
        read(&texts, "/addresses", WRONG, range)
    }

    fn set(texts: &[&str]) -> RangeSet {
        let entries = entries(texts).unwrap();
        let family = entries.first().map_or(Family::V4, AddressRange::family);
        RangeSet::new(family, &entries)
    }

    #[test]
    fn b4_parse_errors_are_refused() {
        for text in [
            "192.168.1.2612",
            "192.168.1.2-192.168.1.4-",
            "192.168.1.2-192.168.1.4-192.168.1.9",
            "192.168.1.4-192.168.1.2",
            "192.168.1.4/21-192.168.1.2",
            "192.168.1.4/-192.168.1.2",
            "192.168.1.2/33",
            "192.168.1.2.4",
            "fe80::zzzz",
            "fe80::3-fe80::1",
            "fe80::1/129",
            "invalid",
            "",
            "-",
            "/",
            "/24",
            "10.0.0.1/",
            "10.0.0.1-",
            " 10.0.0.1",
            "10.0.0.1 - 10.0.0.2",
            "10.0.0.1-fd00::1",
            "fd00::1-::ffff:10.0.0.1",
            "fe80::1%eth0",
        ] {
            let problem = entries(&["192.168.1.25", text]).unwrap_err();
            assert_eq!(problem.code, Code::InvalidField, "{text}");
            assert!(problem.detail.starts_with("wrong: "), "{problem}");
            assert_eq!(problem.errors[0].pointer, "/addresses/1", "{text}");
        }
    }

    #[test]
    fn b4_entries_are_read_in_each_form() {
        for (text, shown) in [
            ("192.168.1.2", "192.168.1.2"),
            ("192.168.1.2-192.168.1.4", "192.168.1.2-192.168.1.4"),
            ("192.168.1.2/24", "192.168.1.0-192.168.1.255"),
            ("fe80::1", "fe80::1"),
            ("fe80::1-fe80::3", "fe80::1-fe80::3"),
            ("fe80::1/64", "fe80::-fe80::ffff:ffff:ffff:ffff"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.1/120", "10.0.0.0-10.0.0.255"),
            ("::ffff:0:0/96", "0.0.0.0-255.255.255.255"),
            ("::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert_eq!(range(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn b4_counts() {
        for (texts, count) in [
            (&[][..], 0),
            (&["192.168.1.1"], 1),
            (&["192.168.1.1", "192.168.1.2"], 2),
            (&["192.168.1.1-192.168.1.10", "192.168.1.20-192.168.1.25"], 16),
            (&["192.168.1.1-192.168.1.10", "192.168.1.5-192.168.1.15"], 15),
            (&["192.168.1.1/24", "192.168.2.1/31"], 258),
            (&["fe80::1/20"], i64::MAX.unsigned_abs()),
            (&["fe80::1/65"], i64::MAX.unsigned_abs()),
            (&["fe80::1/66"], 1 << 62),
            (&["fe80::1/126"], 4),
            (&["::/0"], i64::MAX.unsigned_abs()),
        ] {
            assert_eq!(saturated(set(texts).size()), count, "{texts:?}");
        }
    }

    #[test]
    fn b4_sets_have_the_members() {
        let v4 = set(&["192.168.1.25", "192.168.1.26-192.168.1.28", "192.168.2.16/30"]);
        assert_eq!(format!("{v4:?}"), "[192.168.1.25-192.168.1.28, 192.168.2.16-192.168.2.19]");
        let v6 = set(&["fe80::10/127", "fe80::13-fe80::14", "fe80::16"]);
        assert_eq!(format!("{v6:?}"), "[fe80::10-fe80::11, fe80::13-fe80::14, fe80::16]");
    }

    #[test]
    fn a_longer_list_is_refused_before_an_entry_is_read() {
        let texts = vec!["invalid"; RANGES_MAX + 1];
        let problem = entries(&texts).unwrap_err();
        assert_eq!(problem.errors[0].pointer, "/addresses", "{problem}");
        assert_eq!(entries(&texts[1..]).unwrap_err().errors[0].pointer, "/addresses/0");
    }

    #[test]
    fn a_long_entry_is_shortened_in_the_message() {
        let problem = entries(&["1".repeat(1 << 20).as_str()]).unwrap_err();
        assert!(problem.detail.len() < 200, "{}", problem.detail.len());
    }
}
