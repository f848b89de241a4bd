//! Occupied addresses of networks: allocated, cooling or quarantined.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::state::Occupant;
use crate::state::id::{Id, NetworkId};
use crate::state::index::Part;
use crate::state::indexed::Change;
use crate::tree::Tree;

/// Occupants by network and address. Each family has own maps, since their entries differ in size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Occupants {
    ipv4: OfNetworks<Ipv4Addr>,
    ipv6: OfNetworks<Ipv6Addr>,
}

/// Occupants of networks; none is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OfNetworks<A: Ord + Copy>(Tree<NetworkId, Tree<A, Entry>>);

/// Occupant in nine bytes without padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    id: [u8; 8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allocation,
    Cooling,
    Quarantine,
}

impl Entry {
    fn of(occupant: Occupant) -> Self {
        let (kind, id) = match occupant {
            Occupant::Allocation(id) => (Kind::Allocation, id.get()),
            Occupant::Cooling(id) => (Kind::Cooling, id.get()),
            Occupant::Quarantine(id) => (Kind::Quarantine, id.get()),
        };
        Self { kind, id: id.to_ne_bytes() }
    }

    fn occupant(self) -> Occupant {
        let id = u64::from_ne_bytes(self.id);
        match self.kind {
            Kind::Allocation => Occupant::Allocation(Id::new(id)),
            Kind::Cooling => Occupant::Cooling(Id::new(id)),
            Kind::Quarantine => Occupant::Quarantine(Id::new(id)),
        }
    }
}

impl<A: Ord + Copy> Default for OfNetworks<A> {
    fn default() -> Self {
        Self(Tree::default())
    }
}

impl<A: Ord + Copy> OfNetworks<A> {
    fn get(&self, network: NetworkId, address: A) -> Option<Occupant> {
        self.0.get(&network)?.get(&address).map(|entry| entry.occupant())
    }

    fn range(&self, network: NetworkId, first: A, last: A) -> impl Iterator<Item = (A, Occupant)> {
        let of_network = self.0.get(&network).into_iter();
        let entries = of_network.flat_map(move |entries| entries.range(first..=last));
        entries.map(|(address, entry)| (*address, entry.occupant()))
    }

    fn change(&mut self, network: NetworkId, address: A, occupant: Occupant, change: Change) {
        let has_none = self.0.change(network, |entries| {
            change.in_map(entries, address, Entry::of(occupant));
            entries.is_empty()
        });
        if has_none {
            self.0.remove(&network);
        }
    }

    fn len(&self) -> usize {
        self.0.values().map(Tree::len).sum()
    }

    fn take_in(&mut self, other: Self) {
        for (network, entries) in other.0.iter() {
            self.0.change(*network, |own| own.take_in(entries.clone()));
        }
    }
}

impl Occupants {
    pub(crate) fn get(&self, network: NetworkId, address: IpAddr) -> Option<Occupant> {
        match address {
            IpAddr::V4(address) => self.ipv4.get(network, address),
            IpAddr::V6(address) => self.ipv6.get(network, address),
        }
    }

    /// Occupied addresses from one to another of its family, in order.
    pub(crate) fn range(
        &self,
        network: NetworkId,
        first: IpAddr,
        last: IpAddr,
    ) -> impl Iterator<Item = (IpAddr, Occupant)> {
        let (ipv4, ipv6) = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => (Some(self.ipv4.range(network, first, last)), None),
            (IpAddr::V6(first), IpAddr::V6(last)) => (None, Some(self.ipv6.range(network, first, last))),
            _ => (None, None),
        };
        let ipv4 = ipv4.into_iter().flatten().map(|(address, occupant)| (address.into(), occupant));
        ipv4.chain(ipv6.into_iter().flatten().map(|(address, occupant)| (address.into(), occupant)))
    }

    pub(crate) fn change(&mut self, network: NetworkId, address: IpAddr, occupant: Occupant, change: Change) {
        match address {
            IpAddr::V4(address) => self.ipv4.change(network, address, occupant, change),
            IpAddr::V6(address) => self.ipv6.change(network, address, occupant, change),
        }
    }

    /// Number of occupied addresses. Costs a step for each network.
    pub(crate) fn len(&self) -> usize {
        self.ipv4.len() + self.ipv6.len()
    }
}

impl Part for Occupants {
    fn take_in(&mut self, other: Self) {
        self.ipv4.take_in(other.ipv4);
        self.ipv6.take_in(other.ipv6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupants_of_networks_and_families_are_apart_and_in_order() {
        let mut occupants = Occupants::default();
        let allocation = |id| Occupant::Allocation(Id::new(id));
        let (one, other) = (Id::new(1), Id::new(2));
        let all = [("10.0.1.0", allocation(u64::MAX)), ("10.0.0.255", Occupant::Cooling(Id::new(5)))];
        for (address, occupant) in all {
            occupants.change(one, address.parse().unwrap(), occupant, Change::Enter);
        }
        let quarantine = Occupant::Quarantine(Id::new(7));
        occupants.change(other, "10.0.0.9".parse().unwrap(), quarantine, Change::Enter);
        occupants.change(one, "::a00:1".parse().unwrap(), allocation(8), Change::Enter);
        assert_eq!(occupants.len(), 4);
        assert_eq!(occupants.get(one, "10.0.0.9".parse().unwrap()), None);
        assert_eq!(occupants.get(other, "10.0.0.9".parse().unwrap()), Some(quarantine));
        let range = |first: &str, last: &str| -> Vec<(String, Occupant)> {
            let found = occupants.range(one, first.parse().unwrap(), last.parse().unwrap());
            found.map(|(address, occupant)| (address.to_string(), occupant)).collect()
        };
        let both = all.iter().rev().map(|(address, occupant)| ((*address).to_owned(), *occupant));
        assert_eq!(range("10.0.0.1", "10.0.1.0"), both.collect::<Vec<_>>());
        assert_eq!(range("::", "ffff::"), [("::a00:1".to_owned(), allocation(8))]);
    }

    #[test]
    fn a_network_without_occupants_leaves_nothing() {
        let mut occupants = Occupants::default();
        let address = "10.0.0.1".parse().unwrap();
        for change in [Change::Enter, Change::Leave] {
            occupants.change(Id::new(1), address, Occupant::Cooling(Id::new(2)), change);
        }
        assert_eq!(occupants, Occupants::default());
    }

    #[test]
    fn an_entry_has_no_padding() {
        assert_eq!((size_of::<(Ipv4Addr, Entry)>(), size_of::<(Ipv6Addr, Entry)>()), (13, 25));
    }
}
