//! Adoption: what exists already is recorded as it is.
//!
//! Whoever adopts says what is so, and doesn't ask for anything: selectors, disabled pools, reservations, cooling
//! and a restore that is not confirmed yet are no reasons against it. That two hold one address is, and that the
//! address is no pool's to give: a pool excludes what it will never account for.

use crate::allocate::candidates::{Candidate, Named};
use crate::allocate::pick::{Pick, Taken};
use crate::apply::work::{Search, Work};
use crate::command::{Cause, Grant, InterfaceWish, Refusal};
use crate::space::Space;
use crate::state::State;
use crate::state::id::AllocationId;
use crate::state::row::Network;
use crate::value::cause::Rule;
use ipam_api::address::number;
use ipam_api::name::Name;
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;

impl State {
    /// The addresses that an interface has, each with its pool. What its endpoint may take along is recorded already.
    pub(crate) fn pick_adopted(
        &self,
        wish: &InterfaceWish,
        portable: &[AllocationId],
        picked: &[Pick],
        search: Search<'_>,
    ) -> Result<Vec<Taken>, Refusal> {
        let mut taken: Vec<Taken> = Vec::new();
        for family in Family::BOTH {
            for address in wish.addresses.iter().filter(|address| Family::of(**address) == family) {
                let candidates = self.pools_to_adopt_into(family, *address, wish, search.work)?;
                let own = |candidate: &Candidate<'_>| {
                    let (id, _) = self.allocation_at(self.network_of(candidate), *address)?;
                    portable.contains(&id).then_some(id)
                };
                if let Some(id) = candidates.iter().find_map(own) {
                    taken.push(Taken::Along(id));
                    continue;
                }
                let check = |candidate: &Candidate<'_>| {
                    self.check_adoptable(*address, candidate, picked, search.grant)
                };
                let first = candidates.iter().find(|candidate| check(candidate).is_ok());
                let Some(candidate) = first.or(candidates.first()) else {
                    let interface = wish.name.clone();
                    return Err(Cause::InNoPoolToAdopt { address: *address, interface }.into());
                };
                check(candidate)?;
                let interface = wish.name.clone();
                taken.push(Taken::New(Pick { interface, pool: candidate.id, address: *address }));
            }
        }
        Ok(taken)
    }

    /// The pools that have an address, those first that could give it: among those that are named, else in the
    /// network `default`.
    fn pools_to_adopt_into<'a>(
        &'a self,
        family: Family,
        address: IpAddr,
        wish: &InterfaceWish,
        work: &'a Work,
    ) -> Result<Vec<Candidate<'a>>, Refusal> {
        let named = self.named_pools(family, wish.pools.of(family), (Rule::Request, &wish.name), work)?;
        let mut candidates: Vec<Candidate<'_>> = match named {
            None => self.pools_around(address, work),
            Some(Named { candidates, misnamed }) => {
                let mut candidates = candidates.peekable();
                if let (None, Some(other)) = (candidates.peek(), misnamed.first()) {
                    let (pool, interface) = (other.pool.intention.name.clone(), wish.name.clone());
                    return Err(Cause::NamedForFamily { pool, family, interface, rule: Rule::Request }.into());
                }
                candidates.take_while(|_| work.take(1)).collect()
            }
        };
        work.check()?;
        let has = |candidate: &Candidate<'_>, of: fn(&Space) -> &RangeSet| {
            self.space(candidate.id).is_some_and(|space| of(space).contains(number(address)))
        };
        candidates.retain(|candidate| has(candidate, |space| &space.ranges));
        // What one pool excludes may be another's.
        candidates.sort_by_key(|candidate| !has(candidate, |space| &space.giveable));
        Ok(candidates)
    }

    /// The pools of the network `default` in whose subnet an address is.
    fn pools_around(&self, address: IpAddr, work: &Work) -> Vec<Candidate<'_>> {
        let Some(network) = self.find::<Network>(&Name::default_name()) else { return Vec::new() };
        let owner = self.pool_at(network, address);
        let subnet = self.subnet_at(network, address).map(|(id, _)| id);
        // No pool owns it: one that excludes it can say so.
        let others = subnet.filter(|_| owner.is_none()).into_iter().flat_map(|id| self.pools_of(id));
        let around = owner.into_iter().chain(others).take_while(|_| work.take(1));
        around.filter_map(|id| self.candidate(id)).collect()
    }

    fn check_adoptable(
        &self,
        address: IpAddr,
        candidate: &Candidate<'_>,
        picked: &[Pick],
        grant: &Grant,
    ) -> Result<(), Refusal> {
        let pool = &candidate.pool.intention;
        self.check_not_held(address, candidate)?;
        self.check_not_in_prefix(address, candidate)?;
        if let Some(why) = self.why_never_given(address, candidate) {
            return Err(Cause::NeverAdopted { address, pool: pool.name.clone(), why }.into());
        }
        if pool.terminating {
            return Err(Cause::PoolTerminating { pool: pool.name.clone() }.into());
        }
        self.permit_pool(grant, candidate.id)?;
        match picked.iter().any(|pick| pick.pool == candidate.id && pick.address == address) {
            true => Err(Cause::AskedTwice { address }.into()),
            false => Ok(()),
        }
    }
}
