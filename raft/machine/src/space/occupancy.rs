//! Addresses of a pool: the allocatable and the free ones, and the resulting counts.

use crate::seeded::SeededBug;
pub use crate::value::counts::Counts;
use std::sync::Arc;

use crate::tree::{Tree, TreeSet};
use ipam_api::{Family, RangeSet};
use ipnet::IpNet;

use crate::space::free_set::FreeSet;
use crate::value::id::{CheckId, CoolingId, QuarantineId};

/// Addresses of a pool, derived from its rows.
///
/// `ranges ⊇ allocatable ⊇ occupied`, `offered = allocatable − reservations`, `reserved = ranges ∩
/// reservations`, and the free set is `offered − occupied`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Its subnet's family.
    pub family: Family,
    pub ranges: Arc<RangeSet>,
    /// The ranges without exclusions, gateway and edges.
    pub allocatable: Arc<RangeSet>,
    /// Addresses that may be allocated now: without reservations.
    pub offered: Arc<RangeSet>,
    /// Addresses of its ranges that reservations keep.
    pub reserved: Arc<RangeSet>,
    /// Free addresses.
    pub free: FreeSet,
    /// Addresses held by endpoints.
    pub allocated: u64,
    /// Addresses in prefixes that are cut from it.
    pub delegated: u128,
    /// Ids of its cooling addresses, oldest first.
    pub(crate) cooling: TreeSet<CoolingId>,
    /// Ids of its quarantined addresses.
    pub(crate) quarantined: TreeSet<QuarantineId>,
    /// Checks by the numbers of their addresses, which need not be free.
    pub(crate) checks: Tree<u128, CheckId>,
    /// Occupied addresses that reservations cover.
    occupied_reserved: u128,
    /// Sizes, kept so that counting costs nothing.
    sizes: Sizes,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sizes {
    ranges: u128,
    offered: u128,
    reserved: u128,
    excluded: u128,
}

/// Shape of a pool: the sets that follow from its spec, its subnet and the reservations.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) ranges: RangeSet,
    pub(crate) allocatable: RangeSet,
    pub(crate) reserved: RangeSet,
}

impl Space {
    /// A pool of a subnet, with no addresses yet.
    pub(crate) fn empty(cidr: IpNet) -> Self {
        let family = Family::of(cidr.addr());
        let empty = Arc::new(RangeSet::empty(family));
        let order = family.bits() - cidr.prefix_len();
        Self {
            family,
            ranges: Arc::clone(&empty),
            allocatable: Arc::clone(&empty),
            offered: Arc::clone(&empty),
            reserved: empty,
            free: FreeSet::nothing_free(ipam_api::address::number(cidr.network()), order),
            allocated: 0,
            delegated: 0,
            cooling: TreeSet::default(),
            quarantined: TreeSet::default(),
            checks: Tree::default(),
            occupied_reserved: 0,
            sizes: Sizes::default(),
        }
    }

    /// Numbers of addresses by state.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let quarantined = self.quarantined.len() as u128;
        let occupied = self.held() + self.cooling.len() as u128 + quarantined;
        Counts {
            size: self.sizes.ranges,
            allocated: self.held(),
            cooling: self.cooling.len() as u128,
            quarantined,
            reserved: self.sizes.reserved - self.occupied_reserved,
            excluded: self.sizes.excluded,
            free: self.sizes.offered - (occupied - self.occupied_reserved),
        }
    }

    /// Number of held or cooling addresses that a reservation covers: they aren't allocated again.
    #[must_use]
    pub fn reserved_while_held(&self) -> u128 {
        self.occupied_reserved
    }

    /// Number of held and delegated addresses.
    #[must_use]
    pub fn held(&self) -> u128 {
        u128::from(self.allocated) + self.delegated
    }

    /// Reshapes the pool. `occupied` lists the ends of the pool's occupied addresses in a range; addresses
    /// outside the new `allocatable` must be released already.
    pub(crate) fn reshape<Occupied>(&mut self, shape: Shape, occupied: impl Fn(u128, u128) -> Occupied)
    where
        Occupied: Iterator<Item = (u128, u128)>,
    {
        let offered = shape.allocatable.minus(&shape.reserved);
        for range in self.offered.minus(&offered).ranges() {
            self.free.take(range.first(), range.last());
        }
        for range in offered.minus(&self.offered).ranges() {
            self.free.give(range.first(), range.last());
            for (first, last) in occupied(range.first(), range.last()) {
                self.free.take(first, last);
            }
        }
        let size = |(first, last): (u128, u128)| last - first + 1;
        let count = |ranges: RangeSet| -> u128 {
            ranges.ranges().flat_map(|range| occupied(range.first(), range.last())).map(size).sum()
        };
        // Only owned addresses count: an address that this pool excludes may belong to another pool.
        let (old, new) =
            (self.allocatable.intersection(&self.reserved), shape.allocatable.intersection(&shape.reserved));
        self.occupied_reserved += count(new.minus(&old));
        self.occupied_reserved -= count(old.minus(&new));
        self.sizes = Sizes {
            ranges: shape.ranges.size(),
            offered: offered.size(),
            reserved: shape.reserved.size(),
            excluded: shape.ranges.size() - shape.allocatable.union(&shape.reserved).size(),
        };
        self.ranges = Arc::new(shape.ranges);
        self.allocatable = Arc::new(shape.allocatable);
        self.reserved = Arc::new(shape.reserved);
        self.offered = Arc::new(offered);
    }

    /// Marks an address as occupied.
    pub(crate) fn occupy(&mut self, address: u128) {
        self.free.take(address, address);
        self.occupied_reserved += u128::from(self.reserved.contains(address));
    }

    /// Marks an address as no longer occupied.
    pub(crate) fn vacate(&mut self, address: u128) {
        if self.offered.contains(address) {
            self.free.give(address, address);
        }
        self.occupied_reserved -= u128::from(self.reserved.contains(address));
    }

    /// Moves a block of free addresses to a prefix.
    pub(crate) fn delegate(&mut self, first: u128, last: u128) {
        let left_free = u128::from(last > first && SeededBug::OverlappingPrefix.is_on());
        self.free.take(first, last - left_free);
        self.delegated += last - first + 1;
        self.occupied_reserved += self.reserved_within(first, last);
    }

    /// Returns the block of a prefix to the pool.
    pub(crate) fn take_back(&mut self, first: u128, last: u128) {
        for (first, last) in self.offered.within(first, last) {
            self.free.give(first, last);
        }
        self.delegated -= last - first + u128::from(!SeededBug::MiscountedPrefix.is_on());
        self.occupied_reserved -= self.reserved_within(first, last);
    }

    fn reserved_within(&self, first: u128, last: u128) -> u128 {
        self.reserved.within(first, last).map(|(first, last)| last - first + 1).sum()
    }
}
