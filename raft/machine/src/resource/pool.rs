//! Pools: cut from a subnet, never overlapping in a network, never losing an address that is held.

use crate::apply::step::Step;
use crate::command::validate::inside;
use crate::command::{Answer, Cause, Delete, Kind, PoolSpec, Put, Refusal, Stored};
use crate::event::EventKind;
use crate::event::field_change::changes;
use crate::resource::described::check_room;
use crate::space::Space;
use crate::state::division::blocks_within;
use crate::state::id::{PoolId, PrefixId, SubnetId};
use crate::state::refuse::{check_expected, immutable, not_found};
use crate::state::row::{Automatic, Pool, PoolState, Subnet};
use crate::state::{Occupant, State};
use crate::value::cause::{Constant, NamedController, NamedPrefix};
use crate::value::field_name::FieldName;
use crate::value::row::AutomaticStanding;
use crate::value::shape::{allocatable, owned};
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::Name;
use ipam_api::{Family, RangeSet};

/// Held addresses that a refusal names.
const EXAMPLES: usize = 3;

impl Step<'_> {
    pub(crate) fn put_pool(&mut self, put: &Put<PoolSpec>) -> Result<Answer, Refusal> {
        let spec = &put.spec;
        let old = self.state.find_row::<Pool>(&spec.name);
        check_expected(Kind::Pool, &spec.name, old.map(|(_, row)| &row.meta), put.expect)?;
        let spec = &operator_spec(old.map(|(_, row)| row), spec)?;
        match old.map(|(id, row)| (id, row.clone())) {
            Some((id, old)) => self.change_pool(id, &old, spec),
            None => self.create_pool(spec),
        }
    }

    fn create_pool(&mut self, spec: &PoolSpec) -> Result<Answer, Refusal> {
        let named = self.state.find::<Subnet>(&spec.subnet);
        let subnet_id = named.ok_or_else(|| not_found(Kind::Subnet, &spec.subnet))?;
        let subnet = self.subnet_row(subnet_id);
        check_room(self.state.pools.len(), Kind::Pool)?;
        if spec.terminating {
            return Err(Cause::NewPoolTerminating.into());
        }
        self.check_ranges(spec, &subnet, None)?;
        self.check_gateway_of_pool(spec, &subnet, None)?;
        self.state.check_drains_to(spec, &subnet)?;
        let id = self.state.new_id();
        Ok(self.write_new_pool(id, stored(spec), subnet_id, None))
    }

    fn change_pool(&mut self, id: PoolId, old: &Pool, spec: &PoolSpec) -> Result<Answer, Refusal> {
        let name = &spec.name;
        let subnet = self.subnet_row(old.subnet);
        if old.spec.subnet != spec.subnet {
            return Err(immutable(Kind::Pool, name, Constant::Subnet(old.spec.subnet.clone())));
        }
        self.check_ranges(spec, &subnet, Some(id))?;
        self.check_gateway_of_pool(spec, &subnet, Some(id))?;
        if old.spec == stored(spec) {
            return Ok(Answer::unchanged(&old.meta, Stored::Pool(old.clone())));
        }
        self.check_manager(Kind::Pool, name)?;
        if old.spec.drains_to != spec.drains_to {
            self.state.check_drains_to(spec, &subnet)?;
        }
        if old.spec.gateway != spec.gateway {
            self.check_can_be_gateway(&subnet, spec.gateway)?;
        }
        let lost = allocatable(&old.spec, &subnet.spec).minus(&allocatable(spec, &subnet.spec));
        self.check_not_held(name, &subnet, &lost)?;
        self.state.check_not_delegated(id, name, &lost)?;
        let answer = self.rewrite_pool(id, Pool { spec: stored(spec), ..old.clone() }, false);
        if old.spec.drains_to != spec.drains_to {
            self.wait_for_stand_in(id);
        }
        if self.remove_if_drained(id) {
            return Ok(Answer::Gone);
        }
        Ok(answer)
    }

    /// Writes a pool with another spec, and everything derived from it. An automatic change keeps the
    /// principal of the change before it.
    pub(crate) fn rewrite_pool(&mut self, id: PoolId, row: Pool, by_itself: bool) -> Answer {
        let old = self.state.pools.named(id).clone();
        let subnet = self.subnet_row(old.subnet);
        let changes = changes(&old.spec, &row.spec);
        self.change(Kind::Pool, &old.spec.name, &old.meta, changes, |step, mut meta| {
            if by_itself {
                meta.updated_by.clone_from(&old.meta.updated_by);
            }
            let row = Pool { meta, ..row };
            step.state.rewrite_pool(id, &old, row.clone(), &subnet);
            step.reshape(id, &subnet);
            let cools = |spec: &PoolSpec| (spec.strict_cooling, spec.cooling_reserve);
            if cools(&old.spec) != cools(&row.spec) {
                step.state.refresh_waiters_below(id);
            }
            Stored::Pool(row)
        })
    }

    /// Writes a new pool and everything that is derived from it.
    pub(crate) fn write_new_pool(
        &mut self,
        id: PoolId,
        spec: PoolSpec,
        subnet: SubnetId,
        automatic: Option<Box<Automatic>>,
    ) -> Answer {
        let name = spec.name.clone();
        let row = Pool { meta: self.new_meta(id), spec, subnet, automatic };
        self.state.index_pool(id, &row, &self.subnet_row(subnet));
        self.state.write(id, row.clone());
        self.emit(EventKind::Created { kind: Kind::Pool, name: (&name).into() });
        self.refresh_readiness(id);
        Answer::created(id.get(), Stored::Pool(row))
    }

    pub(crate) fn delete_pool(&mut self, delete: &Delete) -> Result<Answer, Refusal> {
        let name = &delete.name;
        let id = self.to_write::<Pool>(name, delete.expect)?;
        let row = self.state.pools.named(id).clone();
        let held = self.held_of(id);
        if held == 0 {
            self.state.tick();
            self.remove_pool(id);
            return Ok(Answer::Gone);
        }
        if !delete.drain {
            return Err(Cause::PoolInUse { pool: name.clone(), held }.into());
        }
        if !row.spec.terminating {
            let spec = PoolSpec { terminating: true, ..row.spec.clone() };
            self.rewrite_pool(id, Pool { spec, ..row }, false);
        }
        Ok(Answer::Draining { held })
    }

    /// Removes a terminating pool without held addresses.
    pub(crate) fn remove_if_drained(&mut self, id: PoolId) -> bool {
        let terminating = self.state.pools.get(id).is_some_and(|row| row.spec.terminating);
        if terminating && self.held_of(id) == 0 {
            self.remove_pool(id);
            return true;
        }
        false
    }

    /// Number of held or delegated addresses of a pool, saturated for outcomes.
    fn held_of(&self, id: PoolId) -> u64 {
        let held = self.state.space(id).map_or(0, Space::held);
        u64::try_from(held).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
    }

    /// Removes a pool without held addresses, with its cooling and quarantined ones.
    fn remove_pool(&mut self, id: PoolId) {
        let space = self.state.space_of(id);
        let cooling = space.cooling.iter().copied().map(Occupant::Cooling);
        let unheld = cooling.chain(space.quarantined.iter().copied().map(Occupant::Quarantine)).collect();
        let checks: Vec<_> = space.checks.values().copied().collect();
        self.drop_unheld(id, unheld);
        checks.into_iter().for_each(|check| self.state.end_check(check));
        self.withdraw_prefix_claims_from(id.into());
        let row = self.state.erase_named::<Pool>(id);
        self.state.erase::<PoolState>(id);
        let subnet = self.subnet_row(row.subnet);
        self.state.unindex_pool(id, &row, &subnet);
        self.emit(EventKind::Deleted { kind: Kind::Pool, name: (&row.spec.name).into() });
        self.forget_waiting_for(id);
    }

    /// The row of a subnet that another row or the index names.
    pub(super) fn subnet_row(&self, id: SubnetId) -> Subnet {
        self.state.subnets.named(id).clone()
    }

    fn check_ranges(&self, pool: &PoolSpec, subnet: &Subnet, own_id: Option<PoolId>) -> Result<(), Refusal> {
        if let Some(network) = &pool.network
            && *network != subnet.spec.network
        {
            return Err(Cause::SubnetElsewhere {
                subnet: pool.subnet.clone(),
                network: subnet.spec.network.clone(),
                named: network.clone(),
            }
            .into());
        }
        inside(pool.ranges.iter().chain(&pool.exclude), &pool.subnet, subnet.spec.cidr)?;
        for range in owned(pool, subnet.spec.cidr).ranges() {
            let at = |number| (subnet.network, range.family(), number);
            let owners = &self.state.index.owners;
            let reaches = |(last, _): &(u128, PoolId)| *last >= range.first();
            let overlapping = owners.overlapping(at(0), at(range.first()), at(range.last()), reaches);
            let overlapping = overlapping.map(|(_, (_, owner))| *owner);
            if let Some(other) = overlapping.filter(|owner| Some(*owner) != own_id).last() {
                let other = self.state.pools.named(other);
                return Err(Cause::PoolOverlap { range, pool: other.spec.name.clone() }.into());
            }
        }
        Ok(())
    }

    fn check_not_held(&self, name: &Name, subnet: &Subnet, lost: &RangeSet) -> Result<(), Refusal> {
        let mut held = 0_u64;
        let mut examples = Vec::new();
        for range in lost.ranges() {
            for (address, occupant) in self.state.occupied(subnet.network, range) {
                let Occupant::Allocation(id) = occupant else { continue };
                held += 1;
                if examples.len() < EXAMPLES {
                    let holder = self.state.allocations.named(id).endpoint;
                    examples.push((address, self.state.endpoints.named(holder).key.clone()));
                }
            }
        }
        if held == 0 {
            return Ok(());
        }
        Err(Cause::AddressesLost { pool: name.clone(), held, examples }.into())
    }
}

/// Stored form of a spec: the network is the subnet's and isn't stored twice.
fn stored(spec: &PoolSpec) -> PoolSpec {
    PoolSpec { network: None, ..spec.clone() }
}

/// Spec of an operator for a pool; refuses changes that only an automatic pool's application may cause.
fn operator_spec(old: Option<&Pool>, new: &PoolSpec) -> Result<PoolSpec, Refusal> {
    let mut wanted = new.clone();
    let name = &new.name;
    let Some((pool, automatic)) = old.and_then(|pool| Some((&pool.spec, pool.automatic.as_deref()?))) else {
        if new.reclaim.is_some() {
            return Err(Cause::NotAutomatic { pool: name.clone() }.into());
        }
        return Ok(wanted);
    };
    let fixed = |field| {
        let controller = NamedController::of(&automatic.controller);
        Err(Cause::FollowsApplication { pool: name.clone(), field, controller }.into())
    };
    if pool.ranges != new.ranges || pool.exclude != new.exclude {
        let is_exclude = pool.ranges == new.ranges;
        return fixed(if is_exclude { FieldName::Exclude } else { FieldName::Ranges });
    }
    if new.drains_to.is_some() {
        return fixed(FieldName::DrainsTo);
    }
    if new.default {
        return fixed(FieldName::Default);
    }
    let reclaim = new.reclaim.unwrap_or(true);
    wanted.reclaim = Some(reclaim);
    wanted.terminating |= reclaim && automatic.standing == AutomaticStanding::Ended;
    Ok(wanted)
}

impl State {
    /// Refuses to remove delegated addresses from a pool.
    pub(super) fn check_not_delegated(
        &self,
        pool: PoolId,
        name: &Name,
        lost: &RangeSet,
    ) -> Result<(), Refusal> {
        let cut = lost.ranges().flat_map(|range| {
            let blocks = blocks_within(&self.index.blocks, pool.into(), range.first(), range.last());
            blocks.map(|(_, (_, id))| id)
        });
        let mut ids: Vec<PrefixId> = cut.collect();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = ids.iter().take(EXAMPLES).filter_map(|id| self.prefixes.get(*id).map(|row| (*id, row)));
        let examples = rows.map(|(id, row)| NamedPrefix::of(id, row)).collect();
        Err(Cause::PrefixesLost { pool: name.clone(), held: ids.len() as u64, examples }.into())
    }

    /// Refuses to drain a pool to one that can't replace it.
    fn check_drains_to(&self, pool: &PoolSpec, subnet: &Subnet) -> Result<(), Refusal> {
        let Some(to) = &pool.drains_to else { return Ok(()) };
        if *to == pool.name {
            return Err(Cause::DrainsToItself { pool: to.clone() }.into());
        }
        let (_, other) = self.find_row::<Pool>(to).ok_or_else(|| not_found(Kind::Pool, to))?;
        let of = self.subnets.get(other.subnet).ok_or_else(|| not_found(Kind::Subnet, &other.spec.subnet))?;
        let family = |subnet: &Subnet| Family::of(subnet.spec.cidr.addr());
        let (to, name) = (to.clone(), pool.name.clone());
        let cause = if family(of) != family(subnet) {
            Cause::DrainsToFamily { to, there: family(of), pool: name, here: family(subnet) }
        } else if of.network != subnet.network {
            let (there, here) = (of.spec.network.clone(), subnet.spec.network.clone());
            Cause::DrainsToNetwork { to, there, pool: name, here }
        } else if other.spec.terminating {
            Cause::DrainsToTerminating { to }
        } else if other.automatic.is_some() {
            Cause::DrainsToAutomatic { to }
        } else if let Some(further) = other.spec.drains_to.clone() {
            Cause::DrainsToDrained { to, further }
        } else {
            return Ok(());
        };
        Err(cause.into())
    }
}
