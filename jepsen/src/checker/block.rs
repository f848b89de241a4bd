//! Blocks: addresses and CIDRs of a history as ranges.

use std::net::IpAddr;

use ipam_api::address::AddressRange;
use ipnet::IpNet;

/// Reads an address, or a CIDR where a prefix is expected. A CIDR with host bits is an address.
///
/// Answers show an address with the prefix length of its subnet.
#[must_use]
pub fn block(text: &str, is_prefix: bool) -> Option<AddressRange> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(AddressRange::single(address));
    }
    let net: IpNet = text.parse().ok()?;
    let is_cidr = is_prefix && net.addr() == net.network();
    Some(if is_cidr { AddressRange::of_cidr(net) } else { AddressRange::single(net.addr()) })
}

/// Returns true for a block of one address.
#[must_use]
pub fn is_single(block: &AddressRange) -> bool {
    block.first() == block.last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cidr_with_host_bits_is_an_address() {
        let read = |text: &str, is_prefix| block(text, is_prefix).map(|block| block.to_string());
        assert_eq!(read("10.0.0.5", false).as_deref(), Some("10.0.0.5"));
        assert_eq!(read("10.0.0.5/24", true).as_deref(), Some("10.0.0.5"));
        assert_eq!(read("10.0.0.16/28", false).as_deref(), Some("10.0.0.16"));
        assert_eq!(read("10.0.0.16/28", true).as_deref(), Some("10.0.0.16-10.0.0.31"));
        assert_eq!(read("eth0", true), None);
    }
}
