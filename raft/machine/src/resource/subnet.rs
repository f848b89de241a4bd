//! Subnets: they don't overlap inside a network, and keep their CIDR for life.

use crate::apply::step::Step;
use crate::command::{Answer, Cause, Expect, Kind, Put, Refusal, Stored, SubnetSpec};
use crate::event::field_change::changes;
use crate::resource::described::check_room;
use crate::state::id::{PoolId, SubnetId};
use crate::state::refuse::{check_expected, immutable};
use crate::state::row::Subnet;
use crate::value::cause::Constant;
use crate::value::shape::allocatable;
use ipam_api::address::AddressRange;
use ipam_api::name::ResourceName;

impl Step<'_> {
    pub(crate) fn put_subnet(&mut self, put: &Put<SubnetSpec>) -> Result<Answer, Refusal> {
        let spec = &put.spec;
        let old = self.state.find_row::<Subnet>(&spec.name);
        check_expected(Kind::Subnet, &spec.name, old.map(|(_, row)| &row.meta), put.expect)?;
        match old.map(|(id, row)| (id, row.clone())) {
            Some((id, old)) => self.change_subnet(id, &old, spec),
            None => self.create_subnet(spec),
        }
    }

    fn create_subnet(&mut self, spec: &SubnetSpec) -> Result<Answer, Refusal> {
        let network = self.state.network_named(&spec.network)?;
        check_room(self.state.subnets.len(), Kind::Subnet)?;
        let cidr = AddressRange::of_cidr(spec.cidr);
        let until = (network, cidr.family(), cidr.last());
        let nearest = self.state.index.subnet_starts.last_in((network, cidr.family(), 0)..=until);
        if let Some(other) = nearest.and_then(|(_, id)| self.state.subnets.get(*id))
            && AddressRange::of_cidr(other.spec.cidr).last() >= cidr.first()
        {
            return Err(Cause::SubnetOverlap {
                cidr: spec.cidr,
                subnet: other.spec.name.clone(),
                other: other.spec.cidr,
                network: spec.network.clone(),
            }
            .into());
        }
        let row = |meta| Subnet { meta, spec: spec.clone(), network };
        Ok(self.create(&spec.name, row, Stored::Subnet))
    }

    fn change_subnet(&mut self, id: SubnetId, old: &Subnet, spec: &SubnetSpec) -> Result<Answer, Refusal> {
        let name = &spec.name;
        if old.spec == *spec {
            return Ok(Answer::unchanged(&old.meta, Stored::Subnet(old.clone())));
        }
        self.check_manager(Kind::Subnet, name)?;
        if old.spec.cidr != spec.cidr {
            return Err(immutable(Kind::Subnet, name, Constant::Cidr(old.spec.cidr)));
        }
        if old.spec.network != spec.network {
            return Err(immutable(Kind::Subnet, name, Constant::Network(old.spec.network.clone())));
        }
        if old.spec.gateway != spec.gateway {
            self.check_gateway_of_subnet(old, spec.gateway)?;
        }
        let pools: Vec<PoolId> = self.state.pools_of(id).collect();
        Ok(self.change(Kind::Subnet, name, &old.meta, changes(&old.spec, spec), |step, meta| {
            let row = Subnet { meta, spec: spec.clone(), network: old.network };
            step.state.write(id, row.clone());
            if old.spec.gateway != spec.gateway {
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

    /// Reshapes a pool according to its rows, its subnet and the reservations. Addresses outside the new
    /// shape are at most cooling or quarantined: held ones were checked before.
    pub(crate) fn reshape(&mut self, pool: PoolId, subnet: &Subnet) {
        let row = self.state.pools.named(pool);
        let spec = row.spec.clone();
        let allocatable = allocatable(&spec, &subnet.spec);
        let lost = self.state.space(pool).map(|space| space.allocatable.minus(&allocatable));
        let gone = lost.map_or_else(Vec::new, |lost| self.state.unheld_in(pool, subnet.network, &lost));
        self.drop_unheld(pool, gone);
        let shape = self.state.shape_of(&spec, subnet);
        self.state.reshape_pool(pool, shape, subnet.network);
        self.state.end_checks_of_unfree(pool);
        self.refresh_readiness(pool);
    }
}
