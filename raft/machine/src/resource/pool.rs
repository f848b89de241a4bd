//! Pools: cut from a subnet, never overlapping in a network, never losing an address that is held.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Delete, Kind, PoolIntention, Put, Refusal, Stored};
use crate::event::What;
use crate::event::field_change::changes;
use crate::resource::network::check_room;
use crate::space::Space;
use crate::state::Occupant;
use crate::state::id::{AllocationId, CoolingId, EndpointId, Id, NetworkId, PoolId, SubnetId};
use crate::state::refuse::{check_expected, immutable, not_found};
use crate::state::row::{Cooling, Pool, PoolState, Subnet};
use crate::value::cause::{Constant, HeldBy, NamedController};
use crate::value::field_name::FieldName;
use crate::value::row::AutomaticStanding;
use crate::value::shape::{giveable, owned};
use ipam_api::RangeSet;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::Name;
use std::sync::Arc;

/// Held addresses that a refusal names.
const EXAMPLES: usize = 3;

impl Step<'_> {
    pub(crate) fn put_pool(&mut self, put: &Put<PoolIntention>) -> Result<Answer, Refusal> {
        let intention = &put.intention;
        let id = self.state.find::<Pool>(&intention.name);
        let old = id.and_then(|id| self.state.pools.get(id));
        check_expected(Kind::Pool, &intention.name, old.map(|row| &row.meta), put.expect)?;
        let intention = &wanted_by_people(old, intention)?;
        match (id, old.cloned()) {
            (Some(id), Some(old)) => self.change_pool(id, &old, intention),
            _ => self.create_pool(intention),
        }
    }

    fn create_pool(&mut self, intention: &PoolIntention) -> Result<Answer, Refusal> {
        let subnet_id = self
            .state
            .find::<Subnet>(&intention.subnet)
            .ok_or_else(|| not_found(Kind::Subnet, &intention.subnet))?;
        let subnet = self.subnet_row(subnet_id, &intention.subnet)?;
        check_room(self.state.pools.len(), Kind::Pool)?;
        if intention.terminating {
            return Err(Cause::NewPoolTerminating.into());
        }
        self.check_ranges(intention, &subnet, None)?;
        self.check_gateway_of_pool(intention, &subnet, None)?;
        self.state.check_drains_to(intention, &subnet)?;
        let revision = self.state.tick();
        let row = Pool {
            meta: self.new_meta(revision),
            intention: stored(intention),
            subnet: subnet_id,
            automatic: None,
        };
        self.state.index_pool(Id::new(revision), &row, &subnet);
        self.state.write(Id::new(revision), row.clone());
        self.emit(What::Created { kind: Kind::Pool, name: (&intention.name).into() });
        self.refresh_readiness(Id::new(revision));
        Ok(Answer::created(revision, Stored::Pool(row)))
    }

    fn change_pool(&mut self, id: PoolId, old: &Pool, intention: &PoolIntention) -> Result<Answer, Refusal> {
        let name = &intention.name;
        let subnet = self.subnet_row(old.subnet, &old.intention.subnet)?;
        if old.intention.subnet != intention.subnet {
            return Err(immutable(Kind::Pool, name, Constant::Subnet(old.intention.subnet.clone())));
        }
        self.check_ranges(intention, &subnet, Some(id))?;
        self.check_gateway_of_pool(intention, &subnet, Some(id))?;
        if old.intention == stored(intention) {
            return Ok(Answer::unchanged(&old.meta, Stored::Pool(old.clone())));
        }
        self.check_manager(Kind::Pool, name)?;
        if old.intention.drains_to != intention.drains_to {
            self.state.check_drains_to(intention, &subnet)?;
        }
        if old.intention.gateway != intention.gateway {
            self.check_can_be_gateway(&subnet, intention.gateway)?;
        }
        let lost = giveable(&old.intention, &subnet.intention).minus(&giveable(intention, &subnet.intention));
        self.check_not_held(name, &subnet, &lost)?;
        self.state.check_not_delegated(id, name, &lost)?;
        let changes = changes(&old.intention, intention);
        let answer = self.change(Kind::Pool, name, &old.meta, changes, |step, meta| {
            let row = Pool { meta, intention: stored(intention), ..old.clone() };
            step.reindex_pool(id, old, row.clone(), &subnet);
            Stored::Pool(row)
        });
        if old.intention.drains_to != intention.drains_to {
            self.wait_for_stand_in(id);
        }
        if self.remove_if_drained(id) {
            return Ok(Answer::Gone);
        }
        Ok(answer)
    }

    /// Writes a pool's new row and everything that is derived from it.
    pub(crate) fn reindex_pool(&mut self, id: PoolId, old: &Pool, row: Pool, subnet: &Subnet) {
        self.state.rewrite_pool(id, old, row, subnet);
        self.reshape(id, subnet);
    }

    pub(crate) fn delete_pool(&mut self, delete: &Delete) -> Result<Answer, Refusal> {
        let (kind, name) = (Kind::Pool, &delete.name);
        let id = self.state.find(name).ok_or_else(|| not_found(kind, name))?;
        let row = self.state.pools.get(id).ok_or_else(|| not_found(kind, name))?.clone();
        check_expected(kind, name, Some(&row.meta), delete.expect)?;
        self.check_manager(kind, name)?;
        let held = self.held_of(id);
        if held == 0 {
            self.state.tick();
            self.remove_pool(id);
            return Ok(Answer::Gone);
        }
        if !delete.drain {
            return Err(Cause::PoolInUse { pool: name.clone(), held }.into());
        }
        if !row.intention.terminating {
            let subnet = self.subnet_row(row.subnet, &row.intention.subnet)?;
            let intention = PoolIntention { terminating: true, ..row.intention.clone() };
            let changes = changes(&row.intention, &intention);
            self.change(kind, name, &row.meta, changes, |step, meta| {
                let draining = Pool { meta, intention, ..row.clone() };
                step.reindex_pool(id, &row, draining.clone(), &subnet);
                Stored::Pool(draining)
            });
        }
        Ok(Answer::Draining { held })
    }

    /// Removes a terminating pool of which nothing is held any more.
    pub(crate) fn remove_if_drained(&mut self, id: PoolId) -> bool {
        let terminating = self.state.pools.get(id).is_some_and(|row| row.intention.terminating);
        if terminating && self.held_of(id) == 0 {
            self.remove_pool(id);
            return true;
        }
        false
    }

    /// Addresses of a pool that endpoints hold or that are delegated, as far as outcomes count.
    fn held_of(&self, id: PoolId) -> u64 {
        let held = self.state.space(id).map_or(0, Space::held);
        u64::try_from(held).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
    }

    /// Removes a pool of which nothing is held. What rests in it is forgotten.
    fn remove_pool(&mut self, id: PoolId) {
        let resting =
            self.state.space(id).map_or_else(Vec::new, |space| space.cooling.iter().copied().collect());
        self.drop_coolings(id, resting);
        let row = self.state.erase_named::<Pool>(id);
        self.state.erase::<PoolState>(id);
        let subnet = self.state.subnets.named(row.subnet).clone();
        self.state.unindex_pool(id, &row, &subnet);
        self.emit(What::Deleted { kind: Kind::Pool, name: (&row.intention.name).into() });
        self.forget_waiting_for(id);
    }

    pub(crate) fn subnet_row(&self, id: SubnetId, name: &Name) -> Result<Subnet, Refusal> {
        self.state.subnets.get(id).cloned().ok_or_else(|| not_found(Kind::Subnet, name))
    }

    fn check_ranges(
        &self,
        pool: &PoolIntention,
        subnet: &Subnet,
        own_id: Option<PoolId>,
    ) -> Result<(), Refusal> {
        if let Some(network) = &pool.network
            && *network != subnet.intention.network
        {
            return Err(Cause::SubnetElsewhere {
                subnet: pool.subnet.clone(),
                network: subnet.intention.network.clone(),
                named: network.clone(),
            }
            .into());
        }
        let cidr = AddressRange::of_cidr(subnet.intention.cidr);
        for range in pool.ranges.iter().chain(&pool.exclude) {
            let (range, subnet, of) = (*range, pool.subnet.clone(), subnet.intention.cidr);
            if range.family() != cidr.family() {
                return Err(Cause::RangeFamily { range, subnet, cidr: of }.into());
            }
            if !cidr.contains(&range) {
                return Err(Cause::OutsideSubnet { range, subnet, cidr: of }.into());
            }
        }
        for range in owned(pool, subnet.intention.cidr).ranges() {
            let (from, until) =
                ((subnet.network, range.family(), 0), (subnet.network, range.family(), range.last()));
            let overlapping = self
                .state
                .index
                .owners
                .range(from..=until)
                .rev()
                .take_while(|(_, (last, _))| *last >= range.first())
                .find(|(_, (_, owner))| Some(*owner) != own_id);
            if let Some(other) = overlapping.and_then(|(_, (_, owner))| self.state.pools.get(*owner)) {
                return Err(Cause::PoolOverlap { range, pool: other.intention.name.clone() }.into());
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

/// What is kept of an intention: its network is the subnet's and is not kept twice.
fn stored(intention: &PoolIntention) -> PoolIntention {
    PoolIntention { network: None, ..intention.clone() }
}

impl crate::state::State {
    /// The allocation that holds an address.
    #[must_use]
    pub fn allocation_at(
        &self,
        network: NetworkId,
        address: std::net::IpAddr,
    ) -> Option<(AllocationId, &crate::state::row::Allocation)> {
        match self.occupant(network, address)? {
            Occupant::Allocation(id) => self.allocations.get(id).map(|row| (id, row)),
            Occupant::Cooling(_) => None,
        }
    }

    /// How people call an endpoint.
    pub(crate) fn holder(&self, endpoint: EndpointId) -> HeldBy {
        HeldBy(self.endpoints.get(endpoint).map(|row| row.key.clone()))
    }

    /// Ends the rest of an address: it is free, or whatever its pool now makes of it.
    pub(crate) fn end_cooling(&mut self, id: CoolingId) -> Arc<Cooling> {
        let row = self.erase_named::<Cooling>(id);
        let space = self.space_mut(row.pool);
        space.cooling.remove(&id);
        space.vacate(number(row.address));
        row
    }
}

/// What somebody wants of a pool, if people may want it so: what of an automatic pool follows from its application is
/// nobody else's to say.
fn wanted_by_people(old: Option<&Pool>, new: &PoolIntention) -> Result<PoolIntention, Refusal> {
    let mut wanted = new.clone();
    let name = &new.name;
    let Some((pool, automatic)) = old.and_then(|pool| Some((&pool.intention, pool.automatic.as_deref()?)))
    else {
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
