//! Connection limits, total and per source address (IPv6: per /64). One host can't use up all connections.
//! The limits apply to clients, and to peers before their handshake.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use crate::sync::held;

/// Host bits of an IPv6 address, which one host may choose freely within its network.
const HOST_BITS: u32 = 64;

/// Connection limits, total and per address.
#[derive(Debug, Clone)]
pub struct ConnectionLimit {
    max: usize,
    max_per_address: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Open connections by address; an address without connections has no entry.
    by_address: BTreeMap<IpAddr, usize>,
}

/// Permit for one connection, which counts against the limits until it is dropped.
#[derive(Debug)]
pub struct Permit {
    address: IpAddr,
    taken: Arc<Mutex<Taken>>,
}

/// Reason of a refused connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// The total limit is reached, with the number of connections.
    All(usize),
    /// The limit of the address is reached, with the number of connections.
    Address(usize),
}

impl ConnectionLimit {
    /// Creates limits of `max` connections in total and `max_per_address` per address (IPv6: per /64).
    #[must_use]
    pub fn new(max: usize, max_per_address: usize) -> Self {
        Self { max, max_per_address, taken: Arc::default() }
    }

    /// Counts a connection from this address until the permit is dropped.
    ///
    /// # Errors
    /// If a limit is reached.
    pub fn enter(&self, address: IpAddr) -> Result<Permit, LimitReached> {
        let address = counted_as(address);
        let mut taken = held(&self.taken);
        if taken.all >= self.max {
            return Err(LimitReached::All(taken.all));
        }
        let of_address = taken.by_address.get(&address).copied().unwrap_or_default();
        if of_address >= self.max_per_address {
            return Err(LimitReached::Address(of_address));
        }
        taken.all += 1;
        taken.by_address.insert(address, of_address + 1);
        Ok(Permit { address, taken: self.taken.clone() })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = held(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        match taken.by_address.get_mut(&self.address) {
            Some(left) if *left > 1 => *left -= 1,
            _ => {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

/// Key under which connections are counted: the IPv4 address, or the IPv6 /64 network.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_address_takes_all_places_and_freed_places_are_reused() {
        let connection_limit = ConnectionLimit::new(3, 2);
        let first = connection_limit.enter(ip("10.0.0.1")).unwrap();
        let second = connection_limit.enter(ip("::ffff:10.0.0.1")).unwrap();
        assert_eq!(connection_limit.enter(ip("10.0.0.1")).unwrap_err(), LimitReached::Address(2));
        let third = connection_limit.enter(ip("10.0.0.2")).unwrap();
        assert_eq!(connection_limit.enter(ip("10.0.0.3")).unwrap_err(), LimitReached::All(3));
        drop(second);
        let fourth = connection_limit.enter(ip("10.0.0.1")).unwrap();
        drop((first, third, fourth));
        assert!(held(&connection_limit.taken).by_address.is_empty());
        assert_eq!(held(&connection_limit.taken).all, 0);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let connection_limit = ConnectionLimit::new(9, 1);
        let _one = connection_limit.enter(ip("2001:db8::1")).unwrap();
        assert!(connection_limit.enter(ip("2001:db8::ffff:2")).is_err());
        assert!(connection_limit.enter(ip("2001:db8:0:1::1")).is_ok());
    }
}
