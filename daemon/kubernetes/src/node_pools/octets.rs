//! IPv4 addresses with an octet too many, as the proposal for kubernetes-nmstate prints them.

use std::net::Ipv4Addr;

use ipam_api::address::number;
use ipam_api::{AddressRange, Code, Problem};
use ipnet::IpNet;

/// Problem of a text with five octets, with the address of the CIDR that remains without one of them.
pub(super) fn five_octets(text: &str, cidr: IpNet) -> Option<Problem> {
    let octets: Vec<&str> = text.split('.').collect();
    if octets.len() != 5 || octets.iter().any(|octet| octet.parse::<u8>().is_err()) {
        return None;
    }
    let within = AddressRange::of_cidr(cidr);
    let without = |index: usize| {
        let rest = octets.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, octet)| *octet);
        rest.collect::<Vec<_>>().join(".").parse::<Ipv4Addr>().ok()
    };
    let is_inside = |address: &Ipv4Addr| {
        cidr.addr().is_ipv4() && (within.first()..=within.last()).contains(&number((*address).into()))
    };
    let hint = (0..octets.len()).find_map(|index| without(index).filter(is_inside));
    let hint = hint.map_or_else(String::new, |address| format!("; did you mean {address}?"));
    Some(Problem::new(Code::InvalidField, format!("{text} has five octets{hint}")))
}
