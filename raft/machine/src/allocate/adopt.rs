//! Adoption: recording of addresses that endpoints already use.
//!
//! An adoption reports a fact. So selectors, disabled pools, reservations, cooling and a restore without
//! confirmation don't refuse it. It is refused if another endpoint holds the address, or if no pool can
//! allocate the address: a pool excludes the addresses that it will never account for.

use crate::allocate::candidates::Candidate;
use crate::allocate::choosing::Choosing;
use crate::allocate::pick::{Pick, Taken};
use crate::command::{Cause, InterfaceRequest, Refusal};
use crate::space::Space;
use crate::state::id::AllocationId;
use crate::state::row::Network;
use crate::value::cause::Rule;
use ipam_api::address::number;
use ipam_api::name::Name;
use ipam_api::{Family, RangeSet};
use std::net::IpAddr;

impl<'a> Choosing<'a> {
    /// Addresses of an interface to adopt, each with its pool. Addresses that its endpoint may reuse are
    /// recorded already.
    pub(super) fn pick_adopted(
        self,
        request: &InterfaceRequest,
        portable: &[AllocationId],
        picked: &[Pick],
    ) -> Result<Vec<Taken>, Refusal> {
        let mut taken: Vec<Taken> = Vec::new();
        for family in Family::BOTH {
            for address in request.addresses.iter().filter(|address| Family::of(**address) == family) {
                let candidates = self.pools_to_adopt_into(family, *address, request)?;
                let own = |candidate: &Candidate<'_>| {
                    let (id, _) = self.state.allocation_at(self.network_of(candidate), *address)?;
                    portable.contains(&id).then_some(id)
                };
                if let Some(id) = candidates.iter().find_map(own) {
                    taken.push(Taken::Reused(id));
                    continue;
                }
                let check = |candidate: &Candidate<'_>| self.check_adoptable(*address, candidate, picked);
                let first = candidates.iter().find(|candidate| check(candidate).is_ok());
                let Some(candidate) = first.or(candidates.first()) else {
                    let interface = request.name.clone();
                    return Err(Cause::InNoPoolToAdopt { address: *address, interface }.into());
                };
                check(candidate)?;
                let interface = request.name.clone();
                taken.push(Taken::New(Pick { interface, pool: candidate.id, address: *address }));
            }
        }
        Ok(taken)
    }

    /// Pools that contain an address, starting with those that could allocate it. Candidates are the named
    /// pools, or else the pools of the network `default`.
    fn pools_to_adopt_into(
        self,
        family: Family,
        address: IpAddr,
        request: &InterfaceRequest,
    ) -> Result<Vec<Candidate<'a>>, Refusal> {
        let named = self.named_pools(family, request.pools.of(family), (Rule::Request, &request.name))?;
        let mut candidates: Vec<Candidate<'_>> = match named {
            None => self.pools_around(address),
            Some((candidates, misnamed)) => {
                let mut candidates = candidates.peekable();
                if let (None, Some(other)) = (candidates.peek(), misnamed.first()) {
                    let (pool, interface) = (other.pool.spec.name.clone(), request.name.clone());
                    return Err(Cause::NamedForFamily { pool, family, interface, rule: Rule::Request }.into());
                }
                candidates.take_while(|_| self.work.take(1)).collect()
            }
        };
        self.work.check()?;
        let has = |candidate: &Candidate<'_>, of: fn(&Space) -> &RangeSet| {
            self.state.space(candidate.id).is_some_and(|space| of(space).contains(number(address)))
        };
        candidates.retain(|candidate| has(candidate, |space| &space.ranges));
        // An address that one pool excludes may belong to another pool.
        candidates.sort_by_key(|candidate| !has(candidate, |space| &space.allocatable));
        Ok(candidates)
    }

    /// Pools of the network `default` whose subnet contains the address.
    fn pools_around(self, address: IpAddr) -> Vec<Candidate<'a>> {
        let Some(network) = self.state.find::<Network>(&Name::default_name()) else { return Vec::new() };
        let owner = self.state.pool_at(network, address);
        let subnet = self.state.subnet_at(network, address).map(|(id, _)| id);
        // If no pool owns the address, a pool that excludes it provides the reason of the refusal.
        let others = subnet.filter(|_| owner.is_none()).into_iter().flat_map(|id| self.state.pools_of(id));
        let around = owner.into_iter().chain(others).take_while(|_| self.work.take(1));
        around.filter_map(|id| self.candidate(id)).collect()
    }

    fn check_adoptable(
        self,
        address: IpAddr,
        candidate: &Candidate<'_>,
        picked: &[Pick],
    ) -> Result<(), Refusal> {
        let pool = &candidate.pool.spec;
        self.check_not_held(address, candidate)?;
        self.check_not_in_prefix(address, candidate)?;
        if let Some(why) = self.never_given_reason(address, candidate) {
            return Err(Cause::NeverAdopted { address, pool: pool.name.clone(), why }.into());
        }
        if pool.terminating {
            return Err(Cause::PoolTerminating { pool: pool.name.clone() }.into());
        }
        self.state.permit_pool(self.grant, candidate.id)?;
        match picked.iter().any(|pick| pick.pool == candidate.id && pick.address == address) {
            true => Err(Cause::AskedTwice { address }.into()),
            false => Ok(()),
        }
    }
}
