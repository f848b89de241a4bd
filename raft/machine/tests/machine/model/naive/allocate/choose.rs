//! The model's own choice: which pools come into question, and which of them gives.

use std::net::IpAddr;

use ipam_api::name::{Name, ResourceName};
use ipam_api::{Code, Family};
use ipam_machine::command::{Allocate, InterfaceRequest, PoolPatterns};

use super::Choice;
use super::selectors::{stands_for, unspecific};
use crate::model::naive::{Held, Model, Pool};

/// The pools that one family is taken from, in the order in which they are tried.
pub(crate) struct Candidates<'a> {
    pub(crate) family: Family,
    pub(crate) pools: Vec<&'a Pool>,
    /// The number of pools of the other family that the list names.
    misnamed: usize,
}

impl Model {
    /// One address of each family that the interface gets, or has.
    pub(super) fn choose(
        &self,
        all: &Allocate,
        place: usize,
        taken: &[Held],
        portable: &[Held],
    ) -> Result<Vec<Choice<'_>>, Code> {
        let request = &all.interfaces[place];
        if all.options.adopt {
            return self.choose_adopted(request, taken, portable);
        }
        let asked = |family| request.addresses.iter().copied().find(|address| Family::of(*address) == family);
        let reject_reason = |pool: &Pool| self.reject_reason(pool, all, request);
        let mut chosen = Vec::new();
        for Candidates { family, pools: candidates, misnamed } in self.candidates(all, request)? {
            let still_fits = |one: &&Held| {
                let is_open =
                    |pool: &&Pool| pool.spec.drains_to.is_none() && self.may_use(pool, all, request);
                let mut open = candidates.iter().copied().filter(is_open);
                Family::of(one.address) == family
                    && asked(family).is_none_or(|address| address == one.address)
                    && open.any(|pool| pool.spec.name == one.pool)
            };
            if let Some(reused) = portable.iter().find(still_fits) {
                chosen.push(Choice::Reused(reused.clone()));
                continue;
            }
            let new = match asked(family) {
                Some(_) if candidates.is_empty() => Err(Model::nothing_fits(misnamed, Vec::new())),
                Some(address) => self.choose_asked(address, &candidates, taken, reject_reason),
                None => {
                    let mut taken = taken.to_vec();
                    taken.extend(self.asked_behind(all, place));
                    self.choose_any((&candidates, misnamed), &taken, reject_reason)
                }
            };
            let is_drained = |one: &&Held| {
                let of_family = Family::of(one.address) == family;
                of_family && asked(family).is_none_or(|address| address == one.address) && {
                    let is_open =
                        |pool: &&Pool| pool.spec.name == one.pool && self.may_use(pool, all, request);
                    candidates.iter().copied().any(|pool| is_open(&pool))
                }
            };
            // What is left of those is drained: it stays while nothing else is there.
            chosen.push(match (new, portable.iter().find(is_drained)) {
                (Ok((pool, address)), _) => Choice::New(pool, address),
                (Err(_), Some(one)) => Choice::Reused(one.clone()),
                (Err(code), None) => return Err(code),
            });
        }
        Ok(chosen)
    }

    /// Addresses that the interfaces behind one ask for by value.
    fn asked_behind(&self, all: &Allocate, place: usize) -> Vec<Held> {
        let mut asked: Vec<(usize, Held)> = Vec::new();
        for (of, request) in all.interfaces.iter().enumerate() {
            for Candidates { family, pools, .. } in self.candidates(all, request).unwrap_or_default() {
                for address in request.addresses.iter().filter(|address| Family::of(**address) == family) {
                    let taken: Vec<Held> = asked.iter().map(|(_, one)| one.clone()).collect();
                    let reject_reason = |pool: &Pool| self.reject_reason(pool, all, request);
                    if let Ok((pool, address)) = self.choose_asked(*address, &pools, &taken, reject_reason) {
                        asked.push((of, self.as_held(pool, address)));
                    }
                }
            }
        }
        asked.into_iter().filter(|(of, _)| *of > place).map(|(_, one)| one).collect()
    }

    /// The pools that each family is taken from, in the order in which they are tried.
    pub(crate) fn candidates(
        &self,
        all: &Allocate,
        request: &InterfaceRequest,
    ) -> Result<Vec<Candidates<'_>>, Code> {
        let namespace = ResourceName::in_realm(&all.endpoint.realm, &all.endpoint.namespace);
        let nothing = PoolPatterns::default();
        let of_namespace = self.namespaces.get(&namespace).map_or(&nothing, |one| &one.default_pools);
        let by_subnet = !request.subnets.is_empty();
        let own = by_subnet && all.automatic_pool.is_some();
        let mut said = [&request.pools, of_namespace, &request.default_pools].into_iter();
        let named = said.find(|pools| !by_subnet && !pools.is_empty());
        let asked = |family| request.addresses.iter().copied().find(|address| Family::of(*address) == family);
        let family_of = |pool: &Pool| Family::of(self.subnet_of(&pool.spec).cidr.addr());
        let mut per_family = Vec::new();
        for family in Family::BOTH {
            if request.subnets.iter().any(|subnet| !self.subnets.contains_key(subnet)) {
                return Err(Code::NotFound);
            }
            if !request.families.is_empty() && !request.families.contains(&family) {
                continue;
            }
            let names = named.map_or(&[][..], |pools| pools.of(family));
            let mut candidates: Vec<&Pool> = Vec::new();
            let mut misnamed: Vec<&Name> = Vec::new();
            for subnet in &request.subnets {
                let inside = |pool: &&Pool| {
                    pool.spec.subnet == *subnet
                        && !own
                        && pool.automatic.is_none()
                        && family_of(pool) == family
                        && candidates.iter().all(|known| known.spec.name != pool.spec.name)
                };
                let found: Vec<&Pool> = self.pools.values().filter(inside).collect();
                candidates.extend(found);
            }
            if own {
                candidates.extend(self.own_pool(all, request, family)?);
            }
            for pattern in names {
                let mut found: Vec<&Pool> =
                    self.pools.values().filter(|pool| stands_for(pattern, &pool.spec.name)).collect();
                let others = found.iter().map(|pool| &pool.spec.name).filter(|_| pattern.name().is_some());
                let others = others.filter(|name| family_of(&self.pools[*name]) != family);
                misnamed.extend(others);
                let is_misnamed = pattern.name().is_some() && !found.is_empty();
                found.retain(|pool| family_of(pool) == family);
                if found.is_empty() && !is_misnamed {
                    return Err(Code::NotFound);
                }
                found.retain(|pool| candidates.iter().all(|known| known.spec.name != pool.spec.name));
                candidates.extend(found);
            }
            if named.is_none() && !by_subnet {
                candidates.extend(self.default_pools(family));
            }
            misnamed.sort();
            misnamed.dedup();
            match (candidates.is_empty() && misnamed.is_empty(), asked(family)) {
                (true, Some(_)) => return Err(Code::AddressOutsidePools),
                (true, None) if !request.families.is_empty() => return Err(Code::NoPoolSelected),
                (true, None) => {}
                (false, _) => {
                    per_family.push(Candidates { family, pools: candidates, misnamed: misnamed.len() });
                }
            }
        }
        if per_family.is_empty() {
            return Err(Code::NoPoolSelected);
        }
        for Candidates { family, pools: candidates, .. } in &mut per_family {
            candidates.sort_by_key(|pool| unspecific(&pool.spec.selectors));
            if named.is_some() || (!by_subnet && asked(*family).is_none()) {
                let fits = |pool: &Pool| self.reject_reason(pool, all, request) != Some(Code::NoPoolFits);
                *candidates = self.with_stand_ins(candidates, fits);
            }
        }
        Ok(per_family)
    }

    /// The pools that may be taken from unnamed, by name.
    pub(crate) fn default_pools(&self, family: Family) -> Vec<&Pool> {
        let is_default = |pool: &&Pool| {
            let subnet = self.subnet_of(&pool.spec);
            pool.spec.default
                && Family::of(subnet.cidr.addr()) == family
                && subnet.network == Name::default_name()
        };
        self.pools.values().filter(is_default).collect()
    }

    fn choose_any<'a>(
        &self,
        (all, misnamed): (&[&'a Pool], usize),
        taken: &[Held],
        reject_reason: impl Fn(&Pool) -> Option<Code>,
    ) -> Result<(&'a Pool, IpAddr), Code> {
        let fit: Vec<&'a Pool> = all.iter().copied().filter(|pool| reject_reason(pool).is_none()).collect();
        if fit.is_empty() {
            let why = all.iter().filter_map(|pool| reject_reason(pool)).collect();
            return Err(Model::nothing_fits(misnamed, why));
        }
        let first = fit.iter().find_map(|pool| Some((*pool, self.next_in(pool, taken)?)));
        first.ok_or_else(|| self.exhausted_reason(fit[0]))
    }

    /// The code where no pool gives: that of the only one that was meant.
    fn nothing_fits(misnamed: usize, mut why: Vec<Code>) -> Code {
        why.extend(vec![Code::FamilyMismatch; misnamed]);
        why.retain(|code| *code != Code::NoPoolFits);
        if let [only] = why[..] { only } else { Code::NoPoolFits }
    }

    /// First pool that allocates the address. Else the refusal of the first eligible pool that contains it,
    /// or of the first that contains it.
    fn choose_asked<'a>(
        &self,
        address: IpAddr,
        all: &[&'a Pool],
        taken: &[Held],
        reject_reason: impl Fn(&Pool) -> Option<Code>,
    ) -> Result<(&'a Pool, IpAddr), Code> {
        let says = |pool: &Pool| reject_reason(pool).or_else(|| self.by_value_reason(pool, address, taken));
        if let Some(pool) = all.iter().find(|pool| says(pool).is_none()) {
            return Ok((pool, address));
        }
        let mut having: Vec<&Pool> = all.to_vec();
        having.retain(|pool| self.has(&pool.spec, address));
        having.sort_by_key(|pool| (!self.allocatable(&pool.spec, address), reject_reason(pool).is_some()));
        Err(having.first().and_then(|pool| says(pool)).unwrap_or(Code::AddressOutsidePools))
    }

    fn by_value_reason(&self, pool: &Pool, address: IpAddr, taken: &[Held]) -> Option<Code> {
        let network = &self.subnet_of(&pool.spec).network;
        let is_chosen = |one: &Held| one.pool == pool.spec.name && one.address == address;
        if !self.has(&pool.spec, address) {
            Some(Code::AddressOutsidePools)
        } else if self.holder(network, address).is_some() {
            Some(Code::AddressTaken)
        } else if self.rest(network, address).is_some() && pool.spec.strict_cooling {
            Some(Code::AddressCooling)
        } else if self.quarantine(network, address).is_some() {
            Some(Code::AddressQuarantined)
        } else if self.block_at(network, address).is_some() {
            Some(Code::AddressTaken)
        } else if self.is_reserved(network, address) || !self.allocatable(&pool.spec, address) {
            Some(Code::AddressReserved)
        } else if taken.iter().any(is_chosen) {
            Some(Code::AddressTaken)
        } else {
            None
        }
    }
}
