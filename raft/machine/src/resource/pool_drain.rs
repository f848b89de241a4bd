//! Pools that are drained to another one: they give nothing more, and whoever may take from them takes from the other
//! one in their place.
//!
//! The way is followed once: a pool that is drained itself stands in for nobody.

use ipam_api::Family;
use ipam_api::name::{Name, NamePattern};

use crate::allocate::candidates::{Candidate, Candidates};
use crate::allocate::selectors::Taker;
use crate::apply::work::Work;
use crate::command::{Cause, Kind, PoolIntention, Refusal};
use crate::state::State;
use crate::state::refuse::not_found;
use crate::state::row::{Pool, Subnet};

impl State {
    /// Candidates, each followed by the pool that stands in for it.
    pub(crate) fn with_stand_ins<'a>(
        &'a self,
        candidates: Candidates<'a>,
        taker: Taker<'a>,
    ) -> Candidates<'a> {
        Box::new(candidates.flat_map(move |candidate| {
            let stand_in = self.stand_in(&candidate).filter(|_| {
                // Nobody comes by this way into a pool who could not take from the drained one.
                candidate.pool.why_not(&taker).is_none()
            });
            [candidate].into_iter().chain(stand_in)
        }))
    }

    /// By its name, which may be another pool's by now: it must be one that it could be drained to.
    fn stand_in(&self, drained: &Candidate<'_>) -> Option<Candidate<'_>> {
        let to = drained.pool.intention.drains_to.as_ref()?;
        let found = self.find::<Pool>(to).and_then(|id| self.candidate(id))?;
        let place = |pool: &Pool| {
            let subnet = self.subnets.get(pool.subnet)?;
            Some((subnet.network, Family::of(subnet.intention.cidr.addr())))
        };
        let is_alike = place(found.pool).is_some_and(|there| Some(there) == place(drained.pool));
        (is_alike && found.pool.automatic.is_none()).then_some(found)
    }

    /// Whether a pool stands in for one that somebody names.
    pub(crate) fn stands_in_for(
        &self,
        pool: &Name,
        family: Family,
        named: &[NamePattern],
        work: &Work,
    ) -> bool {
        let mut like = self.pools_like_any(family, named, work).take_while(|_| work.take(1));
        like.any(|id| self.pools.get(id).is_some_and(|row| row.intention.drains_to.as_ref() == Some(pool)))
    }

    /// Refuses to drain a pool to one that can't stand in for it.
    pub(crate) fn check_drains_to(&self, pool: &PoolIntention, subnet: &Subnet) -> Result<(), Refusal> {
        let Some(to) = &pool.drains_to else { return Ok(()) };
        if *to == pool.name {
            return Err(Cause::DrainsToItself { pool: to.clone() }.into());
        }
        let other = self.find::<Pool>(to).and_then(|id| self.pools.get(id));
        let other = other.ok_or_else(|| not_found(Kind::Pool, to))?;
        let of =
            self.subnets.get(other.subnet).ok_or_else(|| not_found(Kind::Subnet, &other.intention.subnet))?;
        let family = |subnet: &Subnet| Family::of(subnet.intention.cidr.addr());
        if family(of) != family(subnet) {
            let (there, here) = (family(of), family(subnet));
            return Err(Cause::DrainsToFamily { to: to.clone(), there, pool: pool.name.clone(), here }.into());
        }
        if of.network != subnet.network {
            let (there, here) = (of.intention.network.clone(), subnet.intention.network.clone());
            return Err(
                Cause::DrainsToNetwork { to: to.clone(), there, pool: pool.name.clone(), here }.into()
            );
        }
        if other.intention.terminating {
            return Err(Cause::DrainsToTerminating { to: to.clone() }.into());
        }
        if other.automatic.is_some() {
            return Err(Cause::DrainsToAutomatic { to: to.clone() }.into());
        }
        match &other.intention.drains_to {
            Some(further) => Err(Cause::DrainsToDrained { to: to.clone(), further: further.clone() }.into()),
            None => Ok(()),
        }
    }
}
