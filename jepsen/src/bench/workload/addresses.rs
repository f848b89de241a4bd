//! Source addresses on loopback, so that a server counts each client as a caller of its own.

use std::net::Ipv4Addr;

/// Source address of a client.
pub(in crate::bench) fn source(number: usize) -> Ipv4Addr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 100, high, low.wrapping_add(1))
}
