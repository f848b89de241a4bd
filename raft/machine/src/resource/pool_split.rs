//! Split of a pool: some ranges move to a new pool, with the held and cooling addresses.
//!
//! Nothing is released or allocated: endpoints hold their addresses under the same ids, in the new pool.

use crate::apply::step::Step;
use crate::command::validate::within;
use crate::command::{Answer, Cause, Kind, Metadata, PoolSpec, Refusal, SplitPool, Stored};
use crate::event::EventKind;
use crate::resource::described::check_room;
use crate::state::Occupant;
use crate::state::id::PoolId;
use crate::state::indexed::less;
use crate::state::row::{Allocation, Cooling, Neighbor, Pool, PoolState, Quarantine, Subnet};
use crate::value::cause::Counted;
use crate::value::shape::{allocatable, ranges};
use ipam_api::address::AddressRange;
use ipam_api::limits::{RANGES_MAX, SPLIT_MOVED_MAX};
use ipam_api::{Family, RangeSet};

/// Rows to write.
struct Plan {
    id: PoolId,
    old: Pool,
    subnet: Subnet,
    remaining: PoolSpec,
    split_off: PoolSpec,
    /// Occupied addresses of the part that is split off.
    moving: Vec<(u128, Occupant)>,
}

impl Step<'_> {
    pub(crate) fn split_pool(&mut self, split: &SplitPool) -> Result<Answer, Refusal> {
        let plan = self.plan_split(split)?;
        let Plan { id, old, subnet, remaining, split_off, moving } = plan;
        let new_id = self.state.new_id();
        let row = Pool { meta: self.new_meta(new_id), spec: split_off, ..old.clone() };
        // Addresses leave the old pool before it shrinks; otherwise their cooling would end.
        self.leave(id, new_id, &moving);
        self.rewrite_pool(id, Pool { spec: remaining, ..old }, false);
        self.state.index_pool(new_id, &row, &subnet);
        self.enter(new_id, &moving);
        self.state.write(new_id, row.clone());
        self.take_over_use(id, new_id);
        self.confirm_with(id, new_id);
        self.emit(EventKind::Created { kind: Kind::Pool, name: (&split.into).into() });
        self.emit(EventKind::PoolSplit {
            pool: split.name.clone(),
            into: split.into.clone(),
            ranges: split.ranges.clone(),
        });
        self.refresh_readiness(new_id);
        self.refresh_readiness(id);
        // The order of claims is unchanged, whichever part gets a free address.
        self.wait_for_both(id, new_id);
        Ok(Answer::created(new_id.get(), Stored::Pool(row)))
    }

    fn plan_split(&self, split: &SplitPool) -> Result<Plan, Refusal> {
        let (kind, name) = (Kind::Pool, &split.name);
        let id = self.to_write::<Pool>(&name.into(), split.expect)?;
        let old = self.state.pools.named(id);
        if self.state.find::<Pool>(&split.into).is_some() {
            return Err(Cause::PoolExists { pool: split.into.clone() }.into());
        }
        check_room(self.state.pools.len(), kind)?;
        if old.automatic.is_some() {
            return Err(Cause::SplitsAutomatic { pool: name.clone() }.into());
        }
        if old.spec.terminating {
            return Err(Cause::PoolTerminating { pool: name.clone() }.into());
        }
        let subnet = self.subnet_row(old.subnet);
        let cidr = subnet.spec.cidr;
        let family = Family::of(cidr.addr());
        if let Some(range) = split.ranges.iter().find(|range| range.family() != family) {
            return Err(Cause::SplitFamily { range: *range, pool: name.clone(), cidr }.into());
        }
        let (whole, wanted) = (ranges(&old.spec, cidr), RangeSet::new(family, &split.ranges));
        if let Some(stranger) = wanted.minus(&whole).ranges().next() {
            return Err(Cause::NotInPool { range: stranger, pool: name.clone() }.into());
        }
        let left: Vec<AddressRange> = whole.minus(&wanted).ranges().collect();
        if left.is_empty() {
            return Err(Cause::NothingRemains { pool: name.clone() }.into());
        }
        within(Counted::RemainingRanges, left.len(), RANGES_MAX)?;
        let exclude = RangeSet::new(family, &old.spec.exclude);
        let metadata = Metadata { managed_by: None, ..old.spec.metadata.clone() };
        let split_off = PoolSpec {
            name: split.into.clone(),
            ranges: split.ranges.clone(),
            exclude: exclude.intersection(&wanted).ranges().collect(),
            metadata,
            ..old.spec.clone()
        };
        within(Counted::Exclusions, split_off.exclude.len(), RANGES_MAX)?;
        let remaining =
            PoolSpec { ranges: left, exclude: without(&old.spec.exclude, &wanted), ..old.spec.clone() };
        within(Counted::RemainingExclusions, remaining.exclude.len(), RANGES_MAX)?;
        let part = allocatable(&old.spec, &subnet.spec).intersection(&wanted);
        // Everything cut from a prefix would have to move with it: an unbounded number of rows.
        self.state.check_not_delegated(id, name, &part)?;
        let moving = self.moving(&subnet, &part)?;
        Ok(Plan { id, old: old.clone(), subnet, remaining, split_off, moving })
    }

    fn moving(&self, subnet: &Subnet, part: &RangeSet) -> Result<Vec<(u128, Occupant)>, Refusal> {
        let occupied = part.ranges().flat_map(|range| self.state.occupied(subnet.network, range));
        let moving = occupied.map(|(address, occupant)| (ipam_api::address::number(address), occupant));
        let moving: Vec<(u128, Occupant)> = moving.take(SPLIT_MOVED_MAX + 1).collect();
        if moving.len() <= SPLIT_MOVED_MAX {
            return Ok(moving);
        }
        Err(Cause::TooManyToMove.into())
    }

    /// Removes addresses from a pool's counts, and writes another pool into their rows.
    fn leave(&mut self, id: PoolId, new_id: PoolId, moving: &[(u128, Occupant)]) {
        for (_, occupant) in moving {
            let state = &mut *self.state;
            match *occupant {
                Occupant::Allocation(own) => {
                    state.write(own, Allocation { pool: new_id, ..state.allocations.named(own).clone() });
                    if let Some(neighbor) = state.neighbors.get(own).cloned() {
                        state.write(own, Neighbor { pool: new_id, ..neighbor });
                    }
                    less(&mut state.space_mut(id).allocated, 1);
                }
                Occupant::Quarantine(own) => {
                    state.write(own, Quarantine { pool: new_id, ..state.quarantines.named(own).clone() });
                    state.space_mut(id).quarantined.remove(&own);
                }
                Occupant::Cooling(own) => {
                    state.write(own, Cooling { pool: new_id, ..state.coolings.named(own).clone() });
                    state.space_mut(id).cooling.remove(&own);
                }
            }
        }
    }

    /// Adds addresses to the counts of a new pool.
    fn enter(&mut self, new_id: PoolId, moving: &[(u128, Occupant)]) {
        let space = self.state.space_mut(new_id);
        for (address, occupant) in moving {
            match *occupant {
                Occupant::Allocation(_) => space.allocated += 1,
                Occupant::Cooling(own) => {
                    space.cooling.insert(own);
                }
                Occupant::Quarantine(own) => {
                    space.quarantined.insert(own);
                }
            }
            space.occupy(*address);
        }
    }

    /// Copies the cursor of the old pool to the new one, if the cursor lies in the new pool's ranges.
    fn take_over_use(&mut self, id: PoolId, new_id: PoolId) {
        let cursor = self.state.pool_states.get(id).and_then(|row| row.cursor);
        let space = self.state.space(new_id);
        let cursor = cursor.filter(|cursor| {
            space.is_some_and(|space| space.ranges.contains(ipam_api::address::number(*cursor)))
        });
        let row = PoolState { cursor, ..PoolState::default() };
        self.state.write(new_id, row);
    }

    /// Copies a confirmation after a restore to the new pool.
    fn confirm_with(&mut self, id: PoolId, new_id: PoolId) {
        let Some(mut row) = self.state.unconfirmed().cloned() else { return };
        if row.confirmed.contains(&id) {
            row.confirmed.insert(new_id);
            self.state.forget_gone_pools(&mut row);
            self.state.write(row.number, row);
        }
    }
}

/// Ranges without some addresses. Unaffected ranges stay as they were written.
fn without(list: &[AddressRange], less: &RangeSet) -> Vec<AddressRange> {
    let left = |range: &AddressRange| RangeSet::new(less.family(), [range]).minus(less);
    list.iter().flat_map(|range| left(range).ranges().collect::<Vec<_>>()).collect()
}
