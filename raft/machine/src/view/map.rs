//! Address maps: runs of consecutive addresses in one state.
//!
//! The cost of a page is proportional to its runs, for a /8 and for an IPv6 /48 alike: addresses between two
//! changes are skipped with the free set and the indexes. Only cooling and quarantined addresses, and
//! held ones that a reservation covers, are examined one by one, a bounded number on each page.

use crate::space::Space;
use crate::state::division::blocks_within;
use crate::state::id::{NetworkId, PoolId, SubnetId};
use crate::state::row::Pool;
use crate::state::{Occupant, State};
use crate::value::counts::Counts;
use crate::value::words::words;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::MAP_STEPS_MAX;
use ipam_api::{Family, RangeSet};

words! {
    /// The state of an address, the first that fits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Standing {
        /// An endpoint holds it, or it is in a delegated prefix.
        Allocated = "allocated",
        /// A foreign host uses it.
        Quarantined = "quarantined",
        /// Freed, and cooling.
        Cooling = "cooling",
        /// A reservation keeps it.
        Reserved = "reserved",
        /// A pool excludes it, or it is the gateway or an edge.
        Excluded = "excluded",
        /// Free for allocation.
        Free = "free",
        /// No pool has it.
        Unmanaged = "unmanaged",
    }
}

/// Consecutive addresses in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first address.
    pub first: u128,
    /// Number of the last address.
    pub last: u128,
    /// State of the addresses.
    pub standing: Standing,
    /// Pool that owns the addresses.
    pub pool: Option<PoolId>,
    /// True if a reservation covers held or cooling addresses: they are never allocated again.
    pub reserved: bool,
}

impl Run {
    fn continues(&self, before: &Run) -> bool {
        let same = |run: &Run| (run.standing, run.pool, run.reserved);
        before.last.checked_add(1) == Some(self.first) && same(self) == same(before)
    }
}

/// Query of a map.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Number of the first address.
    pub from: u128,
    /// Maximum number of runs.
    pub limit: usize,
    /// State to filter by.
    pub only: Option<Standing>,
}

/// A part of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapPage {
    /// Its runs, in order.
    pub runs: Vec<Run>,
    /// Beginning of the next page. The last run may go on there.
    pub next: Option<u128>,
}

/// Page that is being written.
struct Draft {
    page: MapPage,
    wanted: Wanted,
    steps_left: usize,
}

impl Draft {
    fn new(wanted: Wanted) -> Self {
        Self { page: MapPage::default(), wanted, steps_left: MAP_STEPS_MAX }
    }

    /// Adds the runs from `at` to `last`. Returns false if not all of them fitted.
    fn fill(&mut self, mut at: u128, last: u128, run: impl Fn(u128) -> Run) -> bool {
        loop {
            let run = run(at);
            if !self.add(run) {
                return false;
            }
            if run.last >= last {
                return true;
            }
            at = run.last + 1;
        }
    }

    /// Adds a run to the page. Returns false if the page is full.
    fn add(&mut self, run: Run) -> bool {
        let unwanted = self.wanted.only.is_some_and(|only| only != run.standing);
        let full = self.page.runs.len() >= self.wanted.limit;
        match self.page.runs.last_mut() {
            _ if self.steps_left == 0 => self.page.next = Some(run.first),
            _ if unwanted => {}
            Some(before) if run.continues(before) => before.last = run.last,
            _ if full => self.page.next = Some(run.first),
            _ => self.page.runs.push(run),
        }
        self.steps_left = self.steps_left.saturating_sub(1);
        self.page.next.is_none()
    }
}

/// Pool whose map is written.
struct Mapped<'a> {
    state: &'a State,
    network: NetworkId,
    id: PoolId,
    space: &'a Space,
    only: Option<Standing>,
}

impl Mapped<'_> {
    /// Adds the pool's addresses from `at` to `last`. Returns false if not all of them fitted.
    fn write(&self, draft: &mut Draft, at: u128, last: u128) -> bool {
        draft.fill(at, last, |at| self.step(at, last))
    }

    /// Run of addresses from `at` on that are surely in one state; not always the longest one.
    fn step(&self, at: u128, last: u128) -> Run {
        let (allocatable, allocatable_to) = self.space.allocatable.stretch(at);
        let (covered, covered_to) = self.space.reserved.stretch(at);
        let to = last.min(allocatable_to).min(covered_to);
        let run = |last, standing, reserved| Run { first: at, last, standing, pool: Some(self.id), reserved };
        let vacant = if covered {
            Standing::Reserved
        } else if allocatable {
            Standing::Free
        } else {
            Standing::Excluded
        };
        if !allocatable {
            return run(to, vacant, false);
        }
        if self.only == Some(Standing::Free) && !covered && !self.space.free.is_free(at) {
            // Up to the next free address the states don't matter: the query selects free ones only.
            return run(self.not_free_to(at, to), Standing::Allocated, false);
        }
        let to = match self.state.next_block(self.id, at, to) {
            Some((first, last)) if first <= at => return run(to.min(last), Standing::Allocated, covered),
            Some((first, _)) => first - 1,
            None => to,
        };
        match self.state.next_occupied(self.network, self.space.family, at, to) {
            None => run(to, vacant, false),
            Some((found, _)) if found > at => run(found - 1, vacant, false),
            Some((_, Occupant::Cooling(_))) => run(at, Standing::Cooling, covered),
            Some((_, Occupant::Quarantine(_))) => run(at, Standing::Quarantined, covered),
            Some((_, Occupant::Allocation(_))) if covered => run(at, Standing::Allocated, true),
            Some((_, Occupant::Allocation(_))) => {
                let unheld = self.state.next_unheld(self.network, self.space.family, at, to);
                let to = self.not_free_to(at, to);
                run(unheld.map_or(to, |unheld| to.min(unheld - 1)), Standing::Allocated, false)
            }
        }
    }

    /// The last address of a stretch in which none is free.
    fn not_free_to(&self, at: u128, to: u128) -> u128 {
        self.space.free.lowest_from(at).map_or(to, |free| to.min(free.saturating_sub(1)))
    }
}

impl State {
    /// Returns a page of the map of a pool, over all of its ranges.
    #[must_use]
    pub fn map_of_pool(&self, pool: PoolId, wanted: Wanted) -> Option<MapPage> {
        let mapped = self.mapped(pool, self.pools.get(pool)?, wanted.only);
        let mut draft = Draft::new(wanted);
        let ranges = mapped.space.ranges.ranges().filter(|range| range.last() >= wanted.from);
        for range in ranges {
            if !mapped.write(&mut draft, range.first().max(wanted.from), range.last()) {
                break;
            }
        }
        Some(draft.page)
    }

    /// Returns a page of the map of a subnet, over all addresses, owned by a pool or not.
    #[must_use]
    pub fn map_of_subnet(&self, subnet: SubnetId, wanted: Wanted) -> Option<MapPage> {
        let row = self.subnets.get(subnet)?;
        let cidr = AddressRange::of_cidr(row.spec.cidr);
        let (network, family) = (row.network, cidr.family());
        let mut draft = Draft::new(wanted);
        let mut excluded = None;
        let mut next = Some(cidr.first().max(wanted.from)).filter(|at| *at <= cidr.last());
        while let Some(at) = next {
            let (owner, to) = self.owner_from(network, family, at);
            let to = to.min(cidr.last());
            let fits = match owner {
                Some(pool) => {
                    self.mapped(pool, self.pools.named(pool), wanted.only).write(&mut draft, at, to)
                }
                None => {
                    let excluded = excluded.get_or_insert_with(|| self.excluded_in(subnet, family));
                    self.write_gap(&mut draft, network, excluded, at, to)
                }
            };
            next = if fits { to.checked_add(1).filter(|at| *at <= cidr.last()) } else { None };
        }
        Some(draft.page)
    }

    /// Counts of all pools of a subnet, added up.
    #[must_use]
    pub fn counts_of_subnet(&self, subnet: SubnetId) -> Counts {
        let counts = self.pools_of(subnet).map(|pool| self.space_of(pool).counts());
        counts.fold(Counts::default(), Counts::plus)
    }

    /// Counts of all pools of a network, added up.
    #[must_use]
    pub fn counts_of_network(&self, network: NetworkId) -> Counts {
        let counts = self.subnets_of(network).map(|subnet| self.counts_of_subnet(subnet));
        counts.fold(Counts::default(), Counts::plus)
    }

    fn mapped(&self, id: PoolId, pool: &Pool, only: Option<Standing>) -> Mapped<'_> {
        let network = self.subnets.named(pool.subnet).network;
        Mapped { state: self, network, id, space: self.space_of(id), only }
    }

    /// Adds addresses that no pool owns. Returns false if not all of them fitted.
    fn write_gap(
        &self,
        draft: &mut Draft,
        network: NetworkId,
        excluded: &RangeSet,
        at: u128,
        last: u128,
    ) -> bool {
        let reserved = self.index.reserved.get(&(network, excluded.family()));
        draft.fill(at, last, |at| {
            let (covered, covered_to) = reserved.map_or((false, last), |set| set.stretch(at));
            let (left_out, left_out_to) = excluded.stretch(at);
            let standing = match (covered, left_out) {
                (true, _) => Standing::Reserved,
                (false, true) => Standing::Excluded,
                (false, false) => Standing::Unmanaged,
            };
            let to = last.min(covered_to).min(left_out_to);
            Run { first: at, last: to, standing, pool: None, reserved: false }
        })
    }

    fn next_occupied(
        &self,
        network: NetworkId,
        family: Family,
        from: u128,
        to: u128,
    ) -> Option<(u128, Occupant)> {
        let mut occupied = self.index.occupants.range(network, family.address(from), family.address(to));
        occupied.next().map(|(address, occupant)| (number(address), occupant))
    }

    /// Ends of the first prefix of a pool that overlaps the range between two numbers.
    fn next_block(&self, pool: PoolId, from: u128, to: u128) -> Option<(u128, u128)> {
        let mut blocks = blocks_within(&self.index.blocks, pool.into(), from, to);
        blocks.next().map(|(first, (last, _))| (first, last))
    }

    fn next_unheld(&self, network: NetworkId, family: Family, from: u128, to: u128) -> Option<u128> {
        let range = (network, family.address(from))..=(network, family.address(to));
        self.index.unheld.range(range).next().map(|(_, address)| number(*address))
    }
}
