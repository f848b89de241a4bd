//! Automatic pools: pools that a request makes for its application out of a subnet's addresses that no pool has.
//!
//! An application has one for each of its interfaces and families; nobody else takes from them. They are found by what
//! makes the application's endpoints, grow and shrink with what its requests say, and go or stay when it ends.

use crate::allocate::candidates::{Candidate, Candidates};
use crate::allocate::selectors::Taker;
use crate::command::{Allocate, Cause, EndController, InterfaceWish, Kind, Refusal};
use crate::state::State;
use crate::state::id::{Id, PoolId, SubnetId};
use crate::state::key::{Application, ControllerKey};
use crate::state::refuse::not_found;
use crate::state::row::{Automatic, AutomaticStanding, Pool, Subnet};
use crate::value::cause::WhyNot;
use ipam_api::Family;
use ipam_api::limits::AUTOMATIC_POOL_ADDRESSES_MAX;
use ipam_api::name::InterfaceName;
use ipam_api::resource::PoolSize;

impl Automatic {
    /// Whose it is.
    pub(crate) fn application(&self) -> Application<'_> {
        Application { realm: &self.realm, namespace: &self.namespace, controller: &self.controller }
    }

    /// By which it is found.
    pub(crate) fn key(&self) -> ControllerKey {
        ControllerKey::new(&self.realm, &self.namespace, &self.controller)
    }

    /// How many addresses the pool shall have.
    pub(crate) fn wanted(&self) -> u128 {
        self.size.of(self.replicas).into()
    }
}

impl Pool {
    /// Why somebody may not take from it, if so: it is another application's, or what its takers must be.
    pub(crate) fn why_not(&self, taker: &Taker<'_>) -> Option<WhyNot> {
        match &self.automatic {
            Some(automatic) if !taker.application().is_some_and(|own| own.has(automatic)) => {
                Some(WhyNot::OtherApplication)
            }
            _ => self.intention.takers.why_not(taker),
        }
    }
}

impl State {
    /// The pools of an application, the oldest first.
    pub(crate) fn pools_of_application(
        &self,
        key: &ControllerKey,
    ) -> impl Iterator<Item = (PoolId, &Pool, &Automatic)> {
        let all = self.index.applications.range((key.clone(), Id::MIN)..=(key.clone(), Id::MAX));
        all.filter_map(|(_, id)| {
            let pool = self.pools.get(*id)?;
            Some((*id, pool, pool.automatic.as_deref()?))
        })
    }

    /// Those of one of its interfaces and families.
    pub(crate) fn pools_of_interface(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
    ) -> impl Iterator<Item = (PoolId, &Pool, &Automatic)> {
        self.pools_of_application(key).filter(move |(id, _, automatic)| {
            automatic.interface == *interface && self.space(*id).is_some_and(|space| space.family == family)
        })
    }

    /// The one of them that is taken from in a subnet: one that lasts, else the newest that the application has left.
    pub(crate) fn present_pool(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
        subnet: SubnetId,
    ) -> Option<(PoolId, &Pool, &Automatic)> {
        self.pools_of_interface(key, interface, family)
            .filter(|(_, pool, automatic)| {
                pool.subnet == subnet
                    && (!pool.intention.terminating || automatic.standing == AutomaticStanding::Elsewhere)
            })
            .max_by_key(|(id, pool, _)| (!pool.intention.terminating, *id))
    }

    /// Of the subnets that an interface names, the first of a family. All of them must be there.
    pub(crate) fn subnet_of_family(
        &self,
        family: Family,
        wish: &InterfaceWish,
    ) -> Result<Option<SubnetId>, Refusal> {
        let mut first = None;
        for name in &wish.subnets {
            let id = self.find::<Subnet>(name).ok_or_else(|| not_found(Kind::Subnet, name))?;
            let is_of_family = |row: &Subnet| Family::of(row.intention.cidr.addr()) == family;
            if first.is_none() && self.subnets.get(id).is_some_and(is_of_family) {
                first = Some(id);
            }
        }
        Ok(first)
    }

    /// The pool of a family that an interface's application has for it, and nothing else.
    pub(crate) fn automatic_candidate<'a>(
        &'a self,
        family: Family,
        wish: &InterfaceWish,
        taker: &Taker<'_>,
    ) -> Result<Option<Candidates<'a>>, Refusal> {
        let Some(subnet) = self.subnet_of_family(family, wish)? else { return Ok(None) };
        let Some(application) = taker.application() else { return Ok(None) };
        let found = self.present_pool(&application.key(), &wish.name, family, subnet);
        let found = found.map(|(id, pool, _)| Candidate { id, pool });
        Ok(found.map(|candidate| Box::new(std::iter::once(candidate)) as Candidates<'_>))
    }
}

impl Allocate {
    pub(crate) fn check_automatic(&self) -> Result<(), Refusal> {
        let Some(automatic) = &self.automatic_pool else { return Ok(()) };
        if self.stickiness.controller.is_none() {
            return Err(Cause::AutomaticWithoutController { endpoint: self.endpoint.clone() }.into());
        }
        if self.interfaces.iter().all(|interface| interface.subnets.is_empty()) {
            return Err(Cause::AutomaticWithoutSubnet.into());
        }
        if self.manner.wait {
            return Err(Cause::AutomaticWaits.into());
        }
        if self.manner.adopt {
            return Err(Cause::AutomaticAdopts.into());
        }
        let (PoolSize::Fixed(count) | PoolSize::Flexible(count)) = automatic.size;
        if automatic.size == PoolSize::Fixed(0) {
            return Err(Cause::AutomaticEmpty.into());
        }
        let asked = match automatic.size {
            PoolSize::Fixed(_) => u64::from(count),
            PoolSize::Flexible(_) => u64::from(count) + u64::from(automatic.replicas),
        };
        if asked <= u64::from(AUTOMATIC_POOL_ADDRESSES_MAX) {
            return Ok(());
        }
        Err(Cause::AutomaticTooLarge { asked }.into())
    }
}

impl EndController {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.controller.check()
    }
}
