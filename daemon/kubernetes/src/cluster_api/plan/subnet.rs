//! Subnet of a pool that ipamd accepts.

use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipam_api::limits::{SUBNET_PREFIX_LENGTH_MIN_V4, SUBNET_PREFIX_LENGTH_MIN_V6};
use ipam_api::{Family, Problem};
use ipnet::IpNet;

use super::refusal;

/// Longest IPv4 prefix with a network and a broadcast address (RFC 3021 frees /31).
const EDGES_PREFIX_LENGTH_MAX_V4: u8 = 30;
/// Longest IPv6 prefix with a subnet-router address (RFC 4291 §2.6.1; RFC 6164 frees /127).
const EDGES_PREFIX_LENGTH_MAX_V6: u8 = 126;

/// Smallest CIDR that contains the range, if it can be a subnet of ipamd.
pub(super) fn covering(span: &AddressRange, field: &str) -> Result<IpNet, Problem> {
    let first = span.first_address();
    accepted(IpNet::new(first, common_length(span)).unwrap_or_else(|_| first.into()), span, field)
}

/// Prefix length of the smallest CIDR that contains the range.
fn common_length(range: &AddressRange) -> u8 {
    let differing = u128::BITS - (range.first() ^ range.last()).leading_zeros();
    let differing = u8::try_from(differing).unwrap_or(u8::MAX);
    range.family().bits().saturating_sub(differing)
}

/// Subnet with the addresses: `net`, or the largest subnet of ipamd if `net` is larger. `field` is the list
/// that the addresses come from.
pub(super) fn accepted(net: IpNet, span: &AddressRange, field: &str) -> Result<IpNet, Problem> {
    let shortest = match span.family() {
        Family::V4 => SUBNET_PREFIX_LENGTH_MIN_V4,
        Family::V6 => SUBNET_PREFIX_LENGTH_MIN_V6,
    };
    let length = net.prefix_len().max(shortest);
    let subnet = IpNet::new(span.first_address(), length).unwrap_or(net).trunc();
    if AddressRange::of_cidr(subnet).contains(span) {
        return Ok(subnet);
    }
    let detail =
        format!("{span} is not inside one subnet of ipamd, which has a prefix of at least {shortest}");
    Err(refusal(detail, field))
}

/// Reserved addresses of a subnet. IPv4: network and broadcast address; IPv6: subnet-router address.
///
/// As in the state machine, subnets of one or two addresses have no reserved addresses.
pub(super) fn reserved(net: IpNet) -> Vec<IpAddr> {
    match net {
        IpNet::V4(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V4 => {
            vec![net.network().into(), net.broadcast().into()]
        }
        IpNet::V6(net) if net.prefix_len() <= EDGES_PREFIX_LENGTH_MAX_V6 => vec![net.network().into()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_cidr_covers_the_range() {
        for (range, length) in [
            ("10.0.0.7", 32),
            ("10.0.0.0/24", 24),
            ("10.0.0.127-10.0.0.128", 24),
            ("0.0.0.0/0", 0),
            ("127.255.255.255-128.0.0.0", 0),
            ("fd00::/62", 62),
            ("fd00::7", 128),
            ("::/0", 0),
        ] {
            assert_eq!(common_length(&range.parse().unwrap()), length, "{range}");
        }
    }

    #[test]
    fn a_larger_subnet_is_cut_to_that_of_ipamd() {
        for (net, span, subnet) in [
            ("10.1.2.0/24", "10.1.2.3-10.1.2.9", Some("10.1.2.0/24")),
            ("0.0.0.0/0", "10.1.2.3-10.255.255.255", Some("10.0.0.0/8")),
            ("10.0.0.0/7", "10.1.2.3-11.0.0.0", None),
            ("fc00::/7", "fd07::1-fd08::9", Some("fd00::/8")),
            ("fc00::/7", "fc07::1-fd08::", None),
        ] {
            let accepted = accepted(net.parse().unwrap(), &span.parse().unwrap(), "/addresses");
            assert_eq!(accepted.ok(), subnet.map(|subnet| subnet.parse().unwrap()), "{net} {span}");
        }
    }
}
