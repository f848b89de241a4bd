//! Automatic pools: pools that a request makes for its application out of a subnet's addresses that no pool has.
//!
//! An application has one for each of its interfaces and families; nobody else takes from them. They are found by what
//! makes the application's endpoints, grow and shrink with what its requests say, and go or stay when it ends.

mod end;
mod plan;
mod resize;
mod spare;

use ipam_api::limits::AUTOMATIC_POOL_ADDRESSES_MAX;
use ipam_api::name::{InterfaceName, Name, ObjectName};

use super::candidates::{Candidate, Candidates};
use super::change::FieldName;
use super::command::cause::{NamedController, WhyNot};
use super::command::{
    Allocate, Cause, Controller, EndController, InterfaceWish, Kind, PoolIntention, Refusal,
};
use super::model::{Automatic, AutomaticStanding, Pool, Subnet};
use super::state::State;
use super::step::not_found;
use super::sticky::ControllerKey;
use super::takers::Taker;
use ipam_api::Family;
use ipam_api::resource::PoolSize;

pub(super) use spare::all_spare;

/// An application: what makes endpoints, in its realm and namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Application<'a> {
    pub(super) realm: &'a Name,
    pub(super) namespace: &'a ObjectName,
    pub(super) controller: &'a Controller,
}

impl<'a> Application<'a> {
    fn of(wish: &'a Allocate) -> Option<Self> {
        let controller = wish.stickiness.controller.as_ref()?;
        Some(Self { realm: &wish.endpoint.realm, namespace: &wish.endpoint.namespace, controller })
    }

    fn key(&self) -> ControllerKey {
        ControllerKey::new(self.realm, self.namespace, self.controller)
    }

    /// Whether it is the one that a pool was made for, in whatever incarnation.
    fn has(&self, pool: &Automatic) -> bool {
        let (one, other) = (&self.controller, &pool.controller);
        (self.realm, self.namespace) == (&pool.realm, &pool.namespace)
            && (&one.group, &one.kind, &one.name) == (&other.group, &other.kind, &other.name)
    }
}

impl Automatic {
    /// Whose it is.
    pub(super) fn application(&self) -> Application<'_> {
        Application { realm: &self.realm, namespace: &self.namespace, controller: &self.controller }
    }

    /// By which it is found.
    pub(super) fn key(&self) -> ControllerKey {
        ControllerKey::new(&self.realm, &self.namespace, &self.controller)
    }

    /// How many addresses the pool shall have.
    pub(super) fn wanted(&self) -> u128 {
        self.size.of(self.replicas).into()
    }
}

impl Pool {
    /// Why somebody may not take from it, if so: it is another application's, or what its takers must be.
    pub(super) fn why_not(&self, taker: &Taker<'_>) -> Option<WhyNot> {
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
    fn pools_of_application(&self, key: &ControllerKey) -> impl Iterator<Item = (u64, &Pool, &Automatic)> {
        let all = self.index.applications.range((key.clone(), 0)..=(key.clone(), u64::MAX));
        all.filter_map(|(_, id)| {
            let pool = self.pools.get(*id)?;
            Some((*id, pool, pool.automatic.as_deref()?))
        })
    }

    /// Those of one of its interfaces and families.
    fn pools_of_interface(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
    ) -> impl Iterator<Item = (u64, &Pool, &Automatic)> {
        self.pools_of_application(key).filter(move |(id, _, automatic)| {
            automatic.interface == *interface && self.space(*id).is_some_and(|space| space.family == family)
        })
    }

    /// The one of them that is taken from in a subnet: one that lasts, else the newest that the application has left.
    fn present_pool(
        &self,
        key: &ControllerKey,
        interface: &InterfaceName,
        family: Family,
        subnet: u64,
    ) -> Option<(u64, &Pool, &Automatic)> {
        self.pools_of_interface(key, interface, family)
            .filter(|(_, pool, automatic)| {
                pool.subnet == subnet
                    && (!pool.intention.terminating || automatic.standing == AutomaticStanding::Elsewhere)
            })
            .max_by_key(|(id, pool, _)| (!pool.intention.terminating, *id))
    }

    /// Of the subnets that an interface names, the first of a family. All of them must be there.
    fn subnet_of_family(&self, family: Family, wish: &InterfaceWish) -> Result<Option<u64>, Refusal> {
        let mut first = None;
        for name in &wish.subnets {
            let id = self.id_of(Kind::Subnet, name).ok_or_else(|| not_found(Kind::Subnet, name))?;
            let is_of_family = |row: &Subnet| Family::of(row.intention.cidr.addr()) == family;
            if first.is_none() && self.subnets.get(id).is_some_and(is_of_family) {
                first = Some(id);
            }
        }
        Ok(first)
    }

    /// The pool of a family that an interface's application has for it, and nothing else.
    pub(super) fn automatic_candidate<'a>(
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

/// What somebody wants of a pool, if people may want it so: what of an automatic pool follows from its application is
/// nobody else's to say.
pub(super) fn wanted_by_people(old: Option<&Pool>, new: &PoolIntention) -> Result<PoolIntention, Refusal> {
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

impl Allocate {
    pub(super) fn check_automatic(&self) -> Result<(), Refusal> {
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
    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.controller.check()
    }
}
