//! State of the model.

use std::collections::{BTreeMap, BTreeSet};

use ipam_api::address::AddressRange;

use super::pools::{PoolSpec, PoolSpecs};
use crate::checker::space::Space;

/// Allocation or prefix in the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held<'a> {
    /// Network.
    pub network: &'a str,
    /// Addresses of the allocation or of the prefix.
    pub block: AddressRange,
    /// Pool.
    pub pool: &'a str,
    /// Endpoint as `kind/realm/namespace/name`, or owner as `realm/name`.
    pub holder: String,
    /// Interface of an allocation.
    pub interface: &'a str,
    /// True for a prefix.
    pub is_prefix: bool,
}

/// State of the model: what the journal has allocated so far.
#[derive(Debug, Clone, Default)]
pub struct Model<'a> {
    /// Allocations and prefixes by id.
    pub held: BTreeMap<u64, Held<'a>>,
    /// Ids of allocations by pool.
    pub(super) by_pool: BTreeMap<&'a str, BTreeSet<u64>>,
    /// Ids of allocations and prefixes by address.
    pub(super) space: Space<'a, u64>,
    pub(super) quarantined: BTreeSet<(&'a str, AddressRange)>,
    pub(super) pools: BTreeMap<&'a str, PoolSpec>,
    /// Names of split pools and of the pools split from them: their allocations changed pools.
    pub(super) split: BTreeSet<&'a str>,
    /// Pools that the present epoch has confirmed; none without a restore, or if all are confirmed.
    pub(super) confirmed: Option<BTreeSet<&'a str>>,
    /// Revision and number of the previous event, and the last revision before it.
    pub(super) revision: u64,
    pub(super) number: u32,
    pub(super) before: u64,
    pub(super) id_max: u64,
    /// Specs of pools at their creation.
    pub(super) specs: PoolSpecs,
    /// True if nothing was allocated before the first event.
    pub(super) is_complete: bool,
}

impl<'a> Model<'a> {
    /// Empty state. `is_complete` is false for a journal without its begin: then unknown objects are legal.
    #[must_use]
    pub fn new(specs: PoolSpecs, is_complete: bool) -> Self {
        Self { specs, is_complete, ..Self::default() }
    }

    /// Id of the allocation of an address, or none.
    #[must_use]
    pub fn allocation_at(&self, network: &'a str, address: AddressRange) -> Option<u64> {
        let mut ids = self.space.at(network, address);
        ids.find(|id| self.held.get(id).is_some_and(|held| !held.is_prefix))
    }

    /// Ids of the allocations of a pool; none if it was split, since events don't list moved allocations.
    pub fn allocations_of(&self, pool: &str) -> Option<impl Iterator<Item = u64>> {
        let ids = self.by_pool.get(pool).into_iter().flatten().copied();
        (!self.split.contains(pool)).then_some(ids)
    }

    /// Ids of all grants that touch a block.
    pub(super) fn occupants(&self, network: &'a str, block: AddressRange) -> Vec<u64> {
        let around = self.space.around(network, block);
        self.space.at(network, block).chain(around).chain(self.space.inside(network, block)).collect()
    }

    pub(super) fn insert(&mut self, id: u64, held: Held<'a>) {
        self.space.add(held.network, held.block, id);
        if !held.is_prefix {
            self.by_pool.entry(held.pool).or_default().insert(id);
        }
        self.held.insert(id, held);
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Held<'a>> {
        let held = self.held.remove(&id)?;
        if let Some(ids) = self.by_pool.get_mut(held.pool) {
            ids.remove(&id);
        }
        self.space.remove(held.network, held.block, |other| *other == id);
        Some(held)
    }
}
