//! Subnets: they don't overlap inside a network, and keep their CIDR for life.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Expect, Kind, Put, Refusal, Stored, SubnetIntention};
use crate::event::field_change::changes;
use crate::resource::described::check_room;
use crate::state::id::{PoolId, SubnetId};
use crate::state::refuse::{check_expected, immutable};
use crate::state::row::Subnet;
use crate::value::cause::Constant;
use crate::value::shape::giveable;
use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;

impl Step<'_> {
    pub(crate) fn put_subnet(&mut self, put: &Put<SubnetIntention>) -> Result<Answer, Refusal> {
        let intention = &put.intention;
        let id = self.state.find::<Subnet>(&intention.name);
        let old = id.and_then(|id| self.state.subnets.get(id));
        check_expected(Kind::Subnet, &intention.name, old.map(|row| &row.meta), put.expect)?;
        match (id, old.cloned()) {
            (Some(id), Some(old)) => self.change_subnet(id, &old, intention),
            _ => self.create_subnet(intention),
        }
    }

    fn create_subnet(&mut self, intention: &SubnetIntention) -> Result<Answer, Refusal> {
        let network = self.state.network_named(&intention.network)?;
        check_room(self.state.subnets.len(), Kind::Subnet)?;
        let cidr = AddressRange::of_cidr(intention.cidr);
        let until = (network, cidr.family(), cidr.last());
        let nearest = self.state.index.subnet_starts.range((network, cidr.family(), 0)..=until).next_back();
        if let Some(other) = nearest.and_then(|(_, id)| self.state.subnets.get(*id))
            && AddressRange::of_cidr(other.intention.cidr).last() >= cidr.first()
        {
            return Err(Cause::SubnetOverlap {
                cidr: intention.cidr,
                subnet: other.intention.name.clone(),
                other: other.intention.cidr,
                network: intention.network.clone(),
            }
            .into());
        }
        let row = |meta| Subnet { meta, intention: intention.clone(), network };
        Ok(self.create(&intention.name, row, Stored::Subnet))
    }

    fn change_subnet(
        &mut self,
        id: SubnetId,
        old: &Subnet,
        intention: &SubnetIntention,
    ) -> Result<Answer, Refusal> {
        let name = &intention.name;
        if old.intention == *intention {
            return Ok(Answer::unchanged(&old.meta, Stored::Subnet(old.clone())));
        }
        self.check_manager(Kind::Subnet, name)?;
        if old.intention.cidr != intention.cidr {
            return Err(immutable(Kind::Subnet, name, Constant::Cidr(old.intention.cidr)));
        }
        if old.intention.network != intention.network {
            return Err(immutable(Kind::Subnet, name, Constant::Network(old.intention.network.clone())));
        }
        if old.intention.gateway != intention.gateway {
            self.check_gateway_of_subnet(old, intention.gateway)?;
        }
        let pools: Vec<PoolId> = self.state.pools_of(id).collect();
        Ok(self.change(Kind::Subnet, name, &old.meta, changes(&old.intention, intention), |step, meta| {
            let row = Subnet { meta, intention: intention.clone(), network: old.network };
            step.state.write(id, row.clone());
            if old.intention.gateway != intention.gateway {
                for pool in pools {
                    step.reshape(pool, &row);
                }
            }
            Stored::Subnet(row)
        }))
    }

    pub(crate) fn delete_subnet(&mut self, name: &ResourceName, expect: Expect) -> Result<Answer, Refusal> {
        let id = self.to_write::<Subnet>(name, expect)?;
        let pools = self.state.pools_of(id).count();
        if pools > 0 {
            return Err(Cause::SubnetHasPools { subnet: name.clone(), pools: pools as u64 }.into());
        }
        self.delete(id, name);
        Ok(Answer::Gone)
    }

    /// Gives a pool the shape that its rows, its subnet and the reservations now say. What no longer fits
    /// is at rest at most: held addresses were looked for before.
    pub(crate) fn reshape(&mut self, pool: PoolId, subnet: &Subnet) {
        let row = self.state.pools.named(pool);
        let intention = row.intention.clone();
        let giveable = giveable(&intention, &subnet.intention);
        let lost = self.state.space(pool).map(|space| space.giveable.minus(&giveable));
        let gone = lost.map_or_else(Vec::new, |lost| self.state.resting_in(pool, subnet.network, &lost));
        self.drop_coolings(pool, gone);
        let shape = self.state.shape_of(&intention, subnet);
        self.state.reshape_pool(pool, shape, subnet.network);
        self.refresh_readiness(pool);
    }
}
