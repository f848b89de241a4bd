//! Pools: cut from a subnet, never overlapping in a network, never losing an address that is held.

use ipam_api::RangeSet;
use ipam_api::address::{AddressRange, number};
use ipam_api::limits::JSON_INTEGER_MAX;
use ipam_api::name::Name;

use super::automatic::wanted_by_people;
use super::change::changes;
use super::command::Cause;
use super::command::cause::{Constant, HeldBy};
use super::command::{Answer, Delete, Kind, PoolIntention, Put, Refusal, Stored};
use super::event::What;
use super::index::default_keys;
use super::model::{Pool, Subnet};
use super::network::check_room;
use super::shape::{giveable, owned};
use super::space::Space;
use super::state::Occupant;
use super::step::{Step, check_expected, immutable, not_found};

/// Held addresses that a refusal names.
const EXAMPLES: usize = 3;

impl Step<'_> {
    pub(super) fn put_pool(&mut self, put: &Put<PoolIntention>) -> Result<Answer, Refusal> {
        let intention = &put.intention;
        let id = self.state.id_of(Kind::Pool, &intention.name);
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
            .id_of(Kind::Subnet, &intention.subnet)
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
        self.state.index_pool(revision, &row, &subnet);
        self.state.pools.put(revision, row.clone(), &mut self.state.ledger);
        self.emit(What::Created { kind: Kind::Pool, name: (&intention.name).into() });
        self.refresh_readiness(revision);
        Ok(Answer::created(revision, Stored::Pool(row)))
    }

    fn change_pool(&mut self, id: u64, old: &Pool, intention: &PoolIntention) -> Result<Answer, Refusal> {
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
    pub(super) fn reindex_pool(&mut self, id: u64, old: &Pool, row: Pool, subnet: &Subnet) {
        for key in default_keys(id, &old.intention, subnet) {
            self.state.index.default_pools.remove(&key);
        }
        self.state.index.default_pools.extend(default_keys(id, &row.intention, subnet));
        self.state.index.unname_pool(&old.intention, subnet);
        self.state.index.name_pool(id, &row.intention, subnet);
        self.state.index.disown(id, old, subnet);
        self.state.index.own(id, &row, subnet);
        self.state.count_pool(old, subnet, false);
        self.state.count_pool(&row, subnet, true);
        self.state.pools.put(id, row, &mut self.state.ledger);
        self.reshape(id, subnet);
    }

    pub(super) fn delete_pool(&mut self, delete: &Delete) -> Result<Answer, Refusal> {
        let (kind, name) = (Kind::Pool, &delete.name);
        let id = self.state.id_of(kind, name).ok_or_else(|| not_found(kind, name))?;
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
    pub(super) fn remove_if_drained(&mut self, id: u64) -> bool {
        let terminating = self.state.pools.get(id).is_some_and(|row| row.intention.terminating);
        if terminating && self.held_of(id) == 0 {
            self.remove_pool(id);
            return true;
        }
        false
    }

    /// Addresses of a pool that endpoints hold or that are delegated, as far as outcomes count.
    fn held_of(&self, id: u64) -> u64 {
        let held = self.state.space(id).map_or(0, Space::held);
        u64::try_from(held).unwrap_or(u64::MAX).min(JSON_INTEGER_MAX)
    }

    /// Removes a pool of which nothing is held. What rests in it is forgotten.
    fn remove_pool(&mut self, id: u64) {
        let resting =
            self.state.space(id).map_or_else(Vec::new, |space| space.cooling.iter().copied().collect());
        self.drop_coolings(id, resting);
        let Some(row) = self.state.pools.remove(id, &mut self.state.ledger) else { return };
        self.state.pool_states.remove(id, &mut self.state.ledger);
        if let Some(subnet) = self.state.subnets.get(row.subnet).cloned() {
            self.state.unindex_pool(id, &row, &subnet);
        }
        self.emit(What::Deleted { kind: Kind::Pool, name: (&row.intention.name).into() });
        self.forget_waiting_for(id);
    }

    pub(super) fn subnet_row(&self, id: u64, name: &Name) -> Result<Subnet, Refusal> {
        self.state.subnets.get(id).cloned().ok_or_else(|| not_found(Kind::Subnet, name))
    }

    fn check_ranges(
        &self,
        pool: &PoolIntention,
        subnet: &Subnet,
        own_id: Option<u64>,
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
                    let endpoint = self.state.allocations.get(id).map_or(0, |row| row.endpoint);
                    let endpoint = self.state.endpoints.get(endpoint).map(|row| row.key.clone());
                    examples.extend(endpoint.map(|endpoint| (address, endpoint)));
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

impl super::state::State {
    /// The allocation that holds an address.
    #[must_use]
    pub fn allocation_at(
        &self,
        network: u64,
        address: std::net::IpAddr,
    ) -> Option<(u64, &super::model::Allocation)> {
        match self.occupant(network, address)? {
            Occupant::Allocation(id) => self.allocations.get(id).map(|row| (id, row)),
            Occupant::Cooling(_) => None,
        }
    }

    /// How people call an endpoint.
    pub(super) fn holder(&self, endpoint: u64) -> HeldBy {
        HeldBy(self.endpoints.get(endpoint).map(|row| row.key.clone()))
    }

    /// Ends the rest of an address: it is free, or whatever its pool now makes of it.
    pub(super) fn end_cooling(&mut self, id: u64) -> Option<std::sync::Arc<super::model::Cooling>> {
        let row = self.coolings.remove(id, &mut self.ledger)?;
        self.index.occupants.remove(&(row.network, row.address));
        self.index.resting.remove(&(row.network, row.address));
        self.index.cooling_until.remove(&(row.until_ms, id));
        if let Some(space) = self.space_mut(row.pool) {
            space.cooling.remove(&id);
            space.vacate(number(row.address));
        }
        Some(row)
    }
}
