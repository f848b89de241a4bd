//! Holders of a pool's addresses, namespace by namespace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ipam_api::limits::HOLDERS_COUNTED_MAX;
use ipam_api::name::{Name, ObjectName};

use crate::state::id::PoolId;
use crate::state::{Occupant, State};

/// Numbers of addresses that each namespace holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// Realm, namespace and number of addresses; the largest number first, then by name.
    pub namespaces: Vec<(Name, ObjectName, u64)>,
    /// Addresses that were counted.
    pub counted: u64,
    /// True if all held addresses were counted.
    pub complete: bool,
}

impl State {
    /// Holders of a pool's addresses. In a pool with very many, only the lowest addresses are counted.
    #[must_use]
    pub fn holders_of(&self, pool: PoolId) -> Option<Holders> {
        let network = self.subnets.named(self.pools.get(pool)?.subnet).network;
        let space = self.space_of(pool);
        let held = space.allocatable.ranges().flat_map(|range| self.occupied(network, range));
        let endpoints = held.filter_map(|(_, occupant)| match occupant {
            Occupant::Allocation(id) => Some(self.endpoints.named(self.allocations.named(id).endpoint)),
            Occupant::Cooling(_) | Occupant::Quarantine(_) => None,
        });
        let mut counts: BTreeMap<(&Name, &ObjectName), u64> = BTreeMap::new();
        let mut counted = 0;
        for endpoint in endpoints.take(HOLDERS_COUNTED_MAX) {
            *counts.entry((&endpoint.key.realm, &endpoint.key.namespace)).or_default() += 1;
            counted += 1;
        }
        let mut namespaces: Vec<_> = counts
            .into_iter()
            .map(|((realm, namespace), held)| (realm.clone(), namespace.clone(), held))
            .collect();
        namespaces.sort_by_key(|(.., held)| Reverse(*held));
        Some(Holders { namespaces, counted, complete: counted == space.allocated })
    }
}
