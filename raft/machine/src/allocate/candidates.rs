//! Candidate pools of a request, in the order of preference.
//!
//! The first rule that is present wins, for all families of an interface: the pools of the named subnets, or
//! the automatic pools of the application there; the named pools; the pools of the endpoint's namespace; the
//! pools of the CNI configuration; else the default pools of the network `default`, by name. More specific
//! pools are sorted first; equally specific ones keep their order. The remaining candidates are tried in this
//! order.

use crate::access::fits;
use crate::allocate::choosing::Choosing;
use crate::allocate::course::Course;
use crate::allocate::pick::UNITS_PER_POOL_EVALUATED;
use crate::allocate::selectors::Requester;
use crate::command::{Cause, Kind, PoolPatterns, Refusal};
use crate::state::id::{Id, PoolId};
use crate::state::key::SelectorKey;
use crate::state::refuse::not_found;
use crate::state::row::{Network, Pool, Subnet};
use crate::value::cause::{RejectReason, Rule, Unserved, Verdict};
use ipam_api::address::number;
use ipam_api::limits::{POOLS_NAMED_MAX, POOLS_OF_SUBNET_MAX, REASONS_MAX};
use ipam_api::name::{InterfaceName, Name, NamePattern};
use ipam_api::{Code, Family};
use std::collections::BTreeSet;
use std::iter;
use std::net::IpAddr;

/// Pool that a request may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: PoolId,
    pub(crate) pool: &'a Pool,
}

/// Named pools of one family, and those of the other family, which are skipped; each pool once.
pub(super) type Named<'a> = (Candidates<'a>, Vec<Candidate<'a>>);

/// Rejected candidate, with the reason.
pub(super) type Passed<'a> = (Candidate<'a>, RejectReason);

/// Candidates of one family, in the order in which they are tried.
pub(super) type Candidates<'a> = Box<dyn Iterator<Item = Candidate<'a>> + 'a>;

impl<'a> Choosing<'a> {
    /// The candidates of each family that the interface gets an address of, the most specific first.
    pub(super) fn candidates(self, requester: &Requester<'a>) -> Result<Vec<Course<'a>>, Refusal> {
        let request = requester.interface;
        let (rule, named) = rule(requester);
        let mut all = Vec::new();
        // The pools of a family that the request omits are not looked up.
        for family in Family::BOTH.into_iter().filter(|family| request.takes(*family)) {
            let asked = request.asked(family);
            let found: Option<Named<'_>> = match (rule, asked) {
                (Rule::Subnets, _) => self.pools_of_subnets(family, &request.subnets)?.map(all_of_family),
                (Rule::Automatic, _) => self.automatic_candidate(family, requester)?.map(all_of_family),
                (Rule::Request | Rule::Namespace | Rule::Configuration, _) => {
                    self.named_pools(family, named.of(family), (rule, &request.name))?
                }
                (Rule::Default, Some(address)) => {
                    self.default_pools_around(family, address).map(all_of_family)
                }
                (Rule::Default, None) => self.default_pools(family, requester).map(all_of_family),
            };
            // A search cut short by the work budget has no result.
            self.work.check()?;
            match (found, asked) {
                (Some((candidates, misnamed)), asked) => {
                    // A request that names a subnet, or an address and no pool, is limited to that subnet.
                    let candidates = match (rule, asked) {
                        (Rule::Subnets | Rule::Automatic, _) | (Rule::Default, Some(_)) => candidates,
                        _ => self.with_stand_ins(candidates, *requester),
                    };
                    all.push(Course::of(family, rule, candidates, misnamed));
                }
                (None, None) if request.families.is_empty() => {}
                (None, asked) => {
                    let interface = request.name.clone();
                    let cause = match asked {
                        None => Cause::NoPoolOfFamily { interface, family, rule },
                        Some(address) => Cause::NoPoolForAddress { address, interface },
                    };
                    return Err(cause.into());
                }
            }
        }
        if all.is_empty() {
            return Err(Cause::NoPool { interface: request.name.clone(), rule }.into());
        }
        Ok(all)
    }

    /// The pools of a family in some subnets, by name within each; nothing if there is none. Automatic pools
    /// don't count, since only their application may use them.
    fn pools_of_subnets(self, family: Family, subnets: &[Name]) -> Result<Option<Candidates<'a>>, Refusal> {
        let mut all: Vec<Candidate<'_>> = Vec::new();
        for name in subnets {
            let id = self.state.find::<Subnet>(name).ok_or_else(|| not_found(Kind::Subnet, name))?;
            let is_of_family = |row: &Subnet| Family::of(row.spec.cidr.addr()) == family;
            if !self.state.subnets.get(id).is_some_and(is_of_family) {
                continue;
            }
            let pools =
                self.state.pools_for_all(id).take(POOLS_OF_SUBNET_MAX + 1).take_while(|_| self.work.take(1));
            let mut found: Vec<Candidate<'_>> = pools.filter_map(|id| self.candidate(id)).collect();
            if found.len() > POOLS_OF_SUBNET_MAX {
                return Err(Cause::TooManyPoolsInSubnet { subnet: name.clone() }.into());
            }
            found.sort_by(|one, other| one.pool.spec.name.cmp(&other.pool.spec.name));
            all.extend(found);
        }
        Ok(sorted(all))
    }

    /// The pools that a rule names for an interface; nothing if its list is empty.
    pub(super) fn named_pools(
        self,
        family: Family,
        patterns: &[NamePattern],
        (rule, interface): (Rule, &InterfaceName),
    ) -> Result<Option<Named<'a>>, Refusal> {
        if patterns.is_empty() {
            return Ok(None);
        }
        // All named pools must exist, whichever is used in the end.
        let mut misnamed: Vec<Candidate<'_>> = Vec::new();
        for pattern in patterns {
            if let Some(name) = pattern.name() {
                let candidate = self.named_pool(&name, rule)?;
                let is_of_family = self.state.space(candidate.id).is_some_and(|space| space.family == family);
                if is_of_family && patterns.len() == 1 {
                    let candidates: Candidates<'_> = Box::new(iter::once(candidate));
                    return Ok(Some(all_of_family(candidates)));
                }
                if !is_of_family && misnamed.iter().all(|other| other.id != candidate.id) {
                    misnamed.push(candidate);
                }
            } else if !self.is_like_any(family, pattern) {
                // A search cut short by the work budget doesn't prove that no pool matches.
                self.work.check()?;
                let (pattern, interface) = (pattern.clone(), interface.clone());
                return Err(Cause::NoPoolLike { family, pattern, interface, rule }.into());
            }
        }
        let ids = self.pools_like_any(family, patterns);
        Ok(Some((Box::new(ids.filter_map(move |id| self.candidate(id))), misnamed)))
    }

    fn named_pool(self, name: &Name, rule: Rule) -> Result<Candidate<'a>, Refusal> {
        let candidate = self.state.find::<Pool>(name).and_then(|id| self.candidate(id));
        candidate.ok_or_else(|| Cause::NamedPoolMissing { pool: name.clone(), rule }.into())
    }

    /// Default pools that may select the requester, found lazily; nothing if a family has none.
    fn default_pools(self, family: Family, requester: &Requester<'_>) -> Option<Candidates<'a>> {
        let network = self.state.find::<Network>(&Name::default_name())?;
        self.state.default_keys_from(network, family, SelectorKey::Any).next()?;
        let by_selector_key = |selector_key: SelectorKey| {
            let keys = self.state.default_keys_from(network, family, selector_key.clone());
            keys.take_while(move |(_, _, of, ..)| *of == selector_key).peekable()
        };
        let mut found: Vec<_> = requester.selector_keys().into_iter().map(by_selector_key).collect();
        found.retain_mut(|keys| keys.peek().is_some());
        if found.is_empty() {
            // Default pools whose reasons are reported.
            let mut seen = BTreeSet::new();
            let others = self.state.default_keys_from(network, family, SelectorKey::Any).map(|(.., id)| *id);
            let others = others.filter(move |id| seen.insert(*id)).take(REASONS_MAX);
            return Some(Box::new(others.filter_map(move |id| self.candidate(id))));
        }
        // Merges sorted lists: the first of all is the first of one of them.
        let next = move || {
            let first = found
                .iter_mut()
                .filter_map(|keys| keys.peek().copied().map(|(_, _, _, rank, name, _)| ((rank, name), keys)))
                .min_by(|(one, _), (other, _)| one.cmp(other));
            first.and_then(|(_, keys)| keys.next())
        };
        Some(Box::new(iter::from_fn(next).filter_map(move |(.., id)| self.candidate(*id))))
    }

    /// Default pools with an address in their ranges, selected or not; some others if there are none. At most
    /// one pool owns the address; others of its subnet may have it in their ranges and exclude it.
    fn default_pools_around(self, family: Family, address: IpAddr) -> Option<Candidates<'a>> {
        let network = self.state.find::<Network>(&Name::default_name())?;
        let all = || self.state.default_keys_from(network, family, SelectorKey::Any);
        all().next()?;
        let subnet = self.state.subnet_at(network, address).map(|(id, _)| id);
        let excluding =
            subnet.into_iter().flat_map(|id| self.state.index.excluding.range((id, Id::MIN)..=(id, Id::MAX)));
        let near = self.state.pool_at(network, address).into_iter().chain(excluding.map(|(_, pool)| *pool));
        let near =
            near.take_while(|_| self.work.take(UNITS_PER_POOL_EVALUATED)).filter_map(|id| self.candidate(id));
        let has =
            |id: PoolId| self.state.space(id).is_some_and(|space| space.ranges.contains(number(address)));
        let mut found: Vec<Candidate<'_>> =
            near.filter(|near| near.pool.spec.default && has(near.id)).collect();
        if found.is_empty() {
            found = all().take(REASONS_MAX).filter_map(|(.., id)| self.candidate(*id)).collect();
        }
        found.sort_by_key(|one| (one.pool.spec.selectors.rank(), &one.pool.spec.name));
        found.dedup_by_key(|one| one.id);
        Some(Box::new(found.into_iter()))
    }

    pub(crate) fn candidate(self, id: PoolId) -> Option<Candidate<'a>> {
        self.state.pools.get(id).map(|pool| Candidate { id, pool })
    }

    /// Automatic pool of an interface's application for a family, as the only candidate.
    fn automatic_candidate(
        self,
        family: Family,
        requester: &Requester<'_>,
    ) -> Result<Option<Candidates<'a>>, Refusal> {
        let Some(subnet) = self.state.subnet_of_family(family, requester.interface)? else { return Ok(None) };
        let Some(application) = requester.application() else { return Ok(None) };
        let found = self.state.present_pool(&application.key(), &requester.interface.name, family, subnet);
        let found = found.map(|(id, pool, _)| Candidate { id, pool });
        Ok(found.map(|candidate| Box::new(iter::once(candidate)) as Candidates<'_>))
    }

    /// Candidates, each followed by the pool that replaces it.
    fn with_stand_ins(self, candidates: Candidates<'a>, requester: Requester<'a>) -> Candidates<'a> {
        Box::new(candidates.flat_map(move |candidate| {
            let stand_in = self.stand_in(&candidate).filter(|_| {
                // A requester without access to the drained pool gets no access to the replacement through
                // it.
                candidate.pool.reject_reason(&requester).is_none()
            });
            [candidate].into_iter().chain(stand_in)
        }))
    }

    /// Finds the replacement by name. The name may belong to another pool by now, so the found pool must
    /// still be a permitted target.
    fn stand_in(self, drained: &Candidate<'_>) -> Option<Candidate<'a>> {
        let to = drained.pool.spec.drains_to.as_ref()?;
        let found = self.state.find::<Pool>(to).and_then(|id| self.candidate(id))?;
        let place = |pool: &Pool| {
            let subnet = self.state.subnets.get(pool.subnet)?;
            Some((subnet.network, Family::of(subnet.spec.cidr.addr())))
        };
        let is_alike = place(found.pool).is_some_and(|there| Some(there) == place(drained.pool));
        (is_alike && found.pool.automatic.is_none()).then_some(found)
    }

    /// Returns true if a pool replaces one of the named pools.
    pub(super) fn stands_in_for(self, pool: &Name, family: Family, named: &[NamePattern]) -> bool {
        let mut like = self.pools_like_any(family, named).take_while(|_| self.work.take(1));
        like.any(|id| self.state.pools.get(id).is_some_and(|row| row.spec.drains_to.as_ref() == Some(pool)))
    }
}

fn all_of_family(candidates: Candidates<'_>) -> Named<'_> {
    (candidates, Vec::new())
}

/// The first rule that is present, and the pools that it names.
fn rule<'a>(requester: &Requester<'a>) -> (Rule, &'a PoolPatterns) {
    let request = requester.interface;
    if !request.subnets.is_empty() && requester.has_own_pools() {
        (Rule::Automatic, &request.pools)
    } else if !request.subnets.is_empty() {
        (Rule::Subnets, &request.pools)
    } else if !request.pools.is_empty() {
        (Rule::Request, &request.pools)
    } else if let Some(pools) = requester.default_pools() {
        (Rule::Namespace, pools)
    } else if !request.default_pools.is_empty() {
        (Rule::Configuration, &request.default_pools)
    } else {
        (Rule::Default, &request.pools)
    }
}

/// Candidates without duplicates, the most specific first; nothing if there are none.
fn sorted(mut all: Vec<Candidate<'_>>) -> Option<Candidates<'_>> {
    let mut seen = BTreeSet::new();
    all.retain(|candidate| seen.insert(candidate.id));
    all.sort_by_cached_key(|candidate| candidate.pool.spec.selectors.rank());
    (!all.is_empty()).then(|| Box::new(all.into_iter()) as Candidates<'_>)
}

impl<'a> Choosing<'a> {
    /// Reason for which a candidate allocates nothing to a requester.
    pub(crate) fn reject_reason(
        self,
        candidate: &Candidate<'_>,
        requester: &Requester<'_>,
    ) -> Option<RejectReason> {
        let spec = &candidate.pool.spec;
        // Selectors come first, so that the state of pools for other requesters doesn't affect the result.
        let why = candidate.pool.reject_reason(requester);
        let why = why.or_else(|| self.state.closed_reason(candidate.id, spec).map(RejectReason::from));
        why.or_else(|| (!fits(self.grant, &spec.metadata)).then_some(RejectReason::TokenLabels))
    }

    /// Returns the refusal after every candidate was rejected.
    pub(super) fn nothing_fits(
        self,
        interface: &InterfaceName,
        family: Family,
        rejected: &[Passed<'_>],
    ) -> Refusal {
        let meant: Vec<Code> =
            rejected.iter().map(|(_, why)| why.code()).filter(|code| *code != Code::NoPoolFits).collect();
        let code = match meant.as_slice() {
            [only] => *only,
            // Only this reason ends by itself: a retry may succeed.
            several if several.contains(&Code::EpochUnconfirmed) => Code::EpochUnconfirmed,
            _ => Code::NoPoolFits,
        };
        let unserved = self.unserved(interface, family, rejected);
        Cause::NothingFits { unserved, code }.into()
    }

    /// Lists the first rejected pools of an interface.
    pub(super) fn unserved(
        self,
        interface: &InterfaceName,
        family: Family,
        passed: &[Passed<'_>],
    ) -> Unserved {
        let verdict = |(Candidate { id, pool }, why): &Passed<'_>| Verdict {
            pool: pool.spec.name.clone(),
            why: *why,
            counts: self.state.space(*id).map(|space| space.counts()).unwrap_or_default(),
        };
        Unserved {
            interface: interface.clone(),
            family,
            next_free_ms: None,
            pools: passed.iter().take(POOLS_NAMED_MAX).map(verdict).collect(),
            count: passed.len() as u64,
        }
    }
}
