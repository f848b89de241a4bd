//! Adoption: what exists already is recorded as it is.
//!
//! Whoever adopts says what is so, and doesn't ask for anything: selectors, disabled pools, reservations, cooling
//! and a restore that is not confirmed yet are no reasons against it. That two hold one address is, and that the
//! address is no pool's to give: a pool excludes what it will never account for.

use std::net::IpAddr;

use ipam_api::address::number;
use ipam_api::name::Name;
use ipam_api::{Code, Family};

use super::access::fits;
use super::candidates::{Candidate, Rule};
use super::check::invalid;
use super::command::{Allocate, Grant, InterfaceWish, Kind, Refusal};
use super::pick::{Pick, Taken};
use super::state::State;

/// Refuses to adopt what isn't named.
pub(super) fn check(wish: &Allocate) -> Result<(), Refusal> {
    for interface in &wish.interfaces {
        let has = |family| interface.addresses.iter().any(|address| Family::of(*address) == family);
        let asks = |family| !interface.pools.of(family).is_empty() || interface.families.contains(&family);
        if !interface.subnets.is_empty() {
            return Err(invalid(format!(
                "{} names a subnet; what is adopted is found by its address",
                interface.name
            ))
            .help("Leave subnets out."));
        }
        if interface.addresses.is_empty() {
            return Err(invalid(format!("{} names no address that could be adopted", interface.name))
                .help("Name the addresses that it has, or ask without adopt."));
        }
        if let Some(family) = Family::BOTH.into_iter().find(|family| asks(*family) && !has(*family)) {
            return Err(invalid(format!(
                "{} names no {family} address that could be adopted",
                interface.name
            ))
            .help("Name the address that it has, or leave that family out."));
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
        grant: &Grant,
    ) -> Result<Vec<Taken>, Refusal> {
        let mut taken: Vec<Taken> = Vec::new();
        for family in Family::BOTH {
            for address in wish.addresses.iter().filter(|address| Family::of(**address) == family) {
                let candidate = self.pool_to_adopt_into(family, *address, wish)?;
                if let Some((id, _)) = self.allocation_at(self.network_of(&candidate), *address)
                    && portable.contains(&id)
                {
                    taken.push(Taken::Along(id));
                    continue;
                }
                self.check_adoptable(*address, &candidate, grant)?;
                let is_same = |pick: &Pick| pick.pool == candidate.id && pick.address == *address;
                if picked.iter().any(is_same) {
                    return Err(Refusal::new(Code::AddressTaken, format!("{address} is asked for twice")));
                }
                let interface = wish.name.clone();
                taken.push(Taken::New(Pick { interface, pool: candidate.id, address: *address }));
            }
        }
        Ok(taken)
    }

    /// The pool that has an address: among those that are named, else in the network `default`.
    fn pool_to_adopt_into(
        &self,
        family: Family,
        address: IpAddr,
        wish: &InterfaceWish,
    ) -> Result<Candidate<'_>, Refusal> {
        let candidates: Vec<Candidate<'_>> =
            match self.named_pools(family, wish.pools.of(family), Rule::Request, &wish.name)? {
                Some(named) => named.collect(),
                None => self.pools_around(address),
            };
        let has = |giveable: bool| {
            candidates.iter().copied().find(|candidate| {
                self.space(candidate.id).is_some_and(|space| {
                    let addresses = if giveable { &space.giveable } else { &space.ranges };
                    addresses.contains(number(address))
                })
            })
        };
        has(true).or_else(|| has(false)).ok_or_else(|| {
            Refusal::new(
                Code::AddressOutsidePools,
                format!("{address} is in no pool that {} could adopt it into", wish.name),
            )
            .help("Make a pool with it first, or name the pool that has it.")
        })
    }

    /// The pools of the network `default` in whose subnet an address is.
    fn pools_around(&self, address: IpAddr) -> Vec<Candidate<'_>> {
        let Some(network) = self.id_of(Kind::Network, &Name::default_name()) else { return Vec::new() };
        let owner = self.pool_at(network, address);
        let subnet = self.subnet_at(network, address).map(|(id, _)| id);
        // No pool owns it: one that excludes it can say so.
        let others = subnet.filter(|_| owner.is_none()).into_iter().flat_map(|id| self.pools_of(id));
        owner.into_iter().chain(others).filter_map(|id| self.candidate(id)).collect()
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
            return Err(Refusal::new(
                Code::AddressReserved,
                format!("{address} of pool {} is {why}", pool.name),
            )
            .help("Change the pool or its subnet so that it has the address."));
        }
        if pool.terminating {
            return Err(Refusal::new(Code::Terminating, format!("pool {} is terminating", pool.name))
                .help(format!("Call it back first: ipamctl pool set {} --no-drain.", pool.name)));
        }
        if !fits(grant, &pool.remarks) {
            let detail =
                format!("pool {} is not labelled {}, as this token demands", pool.name, grant.labels);
            return Err(Refusal::new(Code::Forbidden, detail));
        }
        Ok(())
    }
}
