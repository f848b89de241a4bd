//! Adoption: what exists already is recorded as it is.
//!
//! Whoever adopts says what is so, and doesn't ask for anything: selectors, disabled pools, reservations, cooling
//! and a restore that is not confirmed yet are no reasons against it. That two hold one address is, and that the
//! address is no pool's to give: a pool excludes what it will never account for.

use std::net::IpAddr;

use ipam_api::Family;
use ipam_api::address::number;
use ipam_api::name::Name;

use super::candidates::{Candidate, Rule};
use super::command::{Allocate, Cause, Grant, InterfaceWish, Kind, Refusal};
use super::pick::{Pick, Taken};
use super::state::State;
use super::work::{Search, Work};

/// Refuses to adopt what isn't named.
pub(super) fn check(wish: &Allocate) -> Result<(), Refusal> {
    for interface in &wish.interfaces {
        let has = |family| interface.addresses.iter().any(|address| Family::of(*address) == family);
        let asks = |family| !interface.pools.of(family).is_empty() || interface.families.contains(&family);
        if !interface.subnets.is_empty() {
            return Err(Cause::AdoptsFromSubnet { interface: interface.name.clone() }.into());
        }
        if interface.addresses.is_empty() {
            return Err(Cause::AdoptsNothing { interface: interface.name.clone() }.into());
        }
        if let Some(family) = Family::BOTH.into_iter().find(|family| asks(*family) && !has(*family)) {
            return Err(Cause::AdoptsNoneOfFamily { interface: interface.name.clone(), family }.into());
        }
    }
    Ok(())
}

impl State {
    /// The addresses that an interface has, each with its pool. What its endpoint may take along is recorded already.
    pub(super) fn pick_adopted(
        &self,
        wish: &InterfaceWish,
        portable: &[u64],
        picked: &[Pick],
        search: Search<'_>,
    ) -> Result<Vec<Taken>, Refusal> {
        let mut taken: Vec<Taken> = Vec::new();
        for family in Family::BOTH {
            for address in wish.addresses.iter().filter(|address| Family::of(**address) == family) {
                let candidate = self.pool_to_adopt_into(family, *address, wish, search.work)?;
                if let Some((id, _)) = self.allocation_at(self.network_of(&candidate), *address)
                    && portable.contains(&id)
                {
                    taken.push(Taken::Along(id));
                    continue;
                }
                self.check_adoptable(*address, &candidate, search.grant)?;
                let is_same = |pick: &Pick| pick.pool == candidate.id && pick.address == *address;
                if picked.iter().any(is_same) {
                    return Err(Cause::AskedTwice { address: *address }.into());
                }
                let interface = wish.name.clone();
                taken.push(Taken::New(Pick { interface, pool: candidate.id, address: *address }));
            }
        }
        Ok(taken)
    }

    /// The pool that has an address: among those that are named, else in the network `default`.
    fn pool_to_adopt_into<'a>(
        &'a self,
        family: Family,
        address: IpAddr,
        wish: &InterfaceWish,
        work: &'a Work,
    ) -> Result<Candidate<'a>, Refusal> {
        let candidates: Vec<Candidate<'_>> =
            match self.named_pools(family, wish.pools.of(family), (Rule::Request, &wish.name), work)? {
                Some(named) => named.take_while(|_| work.take(1)).collect(),
                None => self.pools_around(address, work),
            };
        work.check()?;
        let has = |giveable: bool| {
            candidates.iter().copied().find(|candidate| {
                self.space(candidate.id).is_some_and(|space| {
                    let addresses = if giveable { &space.giveable } else { &space.ranges };
                    addresses.contains(number(address))
                })
            })
        };
        let found = has(true).or_else(|| has(false));
        found.ok_or_else(|| Cause::InNoPoolToAdopt { address, interface: wish.name.clone() }.into())
    }

    /// The pools of the network `default` in whose subnet an address is.
    fn pools_around(&self, address: IpAddr, work: &Work) -> Vec<Candidate<'_>> {
        let Some(network) = self.id_of(Kind::Network, &Name::default_name()) else { return Vec::new() };
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
        Ok(())
    }
}
