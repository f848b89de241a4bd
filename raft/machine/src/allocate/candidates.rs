//! Which pools a request may take from, and in which order.
//!
//! The first rule that is present wins, for all families of an interface: the pools of subnets that the request
//! names, or those that its application has there for itself; the pools that it names; those of the endpoint's namespace; those of the CNI configuration; else the pools
//! of the network `default` that are marked as default, by name. They are sorted: the more specific ones first, in the
//! order that they had where they are equally so. What remains of them is tried in this order.

use crate::access::fits;
use crate::allocate::pick::UNITS_PER_POOL_JUDGED;
use crate::allocate::selectors::Taker;
use crate::apply::work::Work;
use crate::command::{Cause, Grant, InterfaceWish, Kind, PoolPatterns, Refusal};
use crate::space::Space;
use crate::state::State;
use crate::state::id::{Id, NetworkId, PoolId};
use crate::state::index::DefaultKey;
use crate::state::key::{Anchor, MOST_SPECIFIC};
use crate::state::refuse::not_found;
use crate::state::row::{Network, Pool, Subnet};
use crate::value::cause::{Rule, Unserved, Verdict, WhyNot};
use ipam_api::address::number;
use ipam_api::limits::{POOLS_NAMED_MAX, POOLS_OF_SUBNET_MAX, REASONS_MAX};
use ipam_api::name::{InterfaceName, Name, NamePattern};
use ipam_api::{Code, Family};
use std::collections::BTreeSet;
use std::iter;
use std::net::IpAddr;

/// A pool that a request may take from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) id: PoolId,
    pub(crate) pool: &'a Pool,
}

/// What an interface chooses from, for one family.
pub(crate) struct Choice<'a> {
    pub(crate) family: Family,
    pub(crate) rule: Rule,
    pub(crate) candidates: Candidates<'a>,
    /// Pools of the other family that the list names: they are skipped.
    pub(crate) misnamed: Vec<Candidate<'a>>,
}

/// The pools that a list names for one family.
pub(crate) struct Named<'a> {
    pub(crate) candidates: Candidates<'a>,
    /// Pools of the other family, each once.
    pub(crate) misnamed: Vec<Candidate<'a>>,
}

impl<'a> From<Candidates<'a>> for Named<'a> {
    fn from(candidates: Candidates<'a>) -> Self {
        Self { candidates, misnamed: Vec::new() }
    }
}

/// Why a candidate fell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fallen {
    pub(crate) id: PoolId,
    pub(crate) pool: Name,
    pub(crate) why: WhyNot,
}

/// Candidates of one family, in the order in which they are tried.
pub(crate) type Candidates<'a> = Box<dyn Iterator<Item = Candidate<'a>> + 'a>;

impl State {
    /// The candidates of each family that the interface gets an address of, the most specific first.
    pub(crate) fn candidates<'a>(
        &'a self,
        wish: &InterfaceWish,
        taker: &Taker<'a>,
        work: &'a Work,
    ) -> Result<Vec<Choice<'a>>, Refusal> {
        let (rule, named) = rule(wish, taker);
        let mut all = Vec::new();
        // A list of a family that the request omits is not looked up.
        for family in Family::BOTH.into_iter().filter(|family| wish.takes(*family)) {
            let asked = wish.asked(family);
            let found: Option<Named<'_>> = match (rule, asked) {
                (Rule::Subnets, _) => self.pools_of_subnets(family, &wish.subnets, work)?.map(Named::from),
                (Rule::Automatic, _) => self.automatic_candidate(family, wish, taker)?.map(Named::from),
                (Rule::Request | Rule::Namespace | Rule::Configuration, _) => {
                    self.named_pools(family, named.of(family), (rule, &wish.name), work)?
                }
                (Rule::Default, Some(address)) => {
                    self.default_pools_around(family, address, work).map(Named::from)
                }
                (Rule::Default, None) => self.default_pools(family, taker).map(Named::from),
            };
            // What was cut short names no pool; its caller refuses.
            work.check()?;
            match (found, asked) {
                (Some(Named { candidates, misnamed }), asked) => {
                    // Who names a subnet, or an address and no pool, is looked at where it is and nowhere else.
                    let candidates = match (rule, asked) {
                        (Rule::Subnets | Rule::Automatic, _) | (Rule::Default, Some(_)) => candidates,
                        _ => self.with_stand_ins(candidates, *taker),
                    };
                    all.push(Choice { family, rule, candidates, misnamed });
                }
                (None, None) if wish.families.is_empty() => {}
                (None, None) => {
                    let interface = wish.name.clone();
                    return Err(Cause::NoPoolOfFamily { interface, family, rule }.into());
                }
                (None, Some(address)) => {
                    let interface = wish.name.clone();
                    return Err(Cause::NoPoolForAddress { address, interface }.into());
                }
            }
        }
        if all.is_empty() {
            return Err(Cause::NoPool { interface: wish.name.clone(), rule }.into());
        }
        Ok(all)
    }

    /// The pools of a family in some subnets, by name within each; nothing if there is none. Those that were made for
    /// applications are nobody else's, and don't count.
    fn pools_of_subnets<'a>(
        &'a self,
        family: Family,
        subnets: &[Name],
        work: &'a Work,
    ) -> Result<Option<Candidates<'a>>, Refusal> {
        let mut all: Vec<Candidate<'_>> = Vec::new();
        for name in subnets {
            let id = self.find::<Subnet>(name).ok_or_else(|| not_found(Kind::Subnet, name))?;
            let is_of_family = |row: &Subnet| Family::of(row.intention.cidr.addr()) == family;
            if !self.subnets.get(id).is_some_and(is_of_family) {
                continue;
            }
            let pools = self.pools_for_all(id).take(POOLS_OF_SUBNET_MAX + 1).take_while(|_| work.take(1));
            let mut found: Vec<Candidate<'_>> = pools.filter_map(|id| self.candidate(id)).collect();
            if found.len() > POOLS_OF_SUBNET_MAX {
                return Err(Cause::TooManyPoolsInSubnet { subnet: name.clone() }.into());
            }
            found.sort_by(|one, other| one.pool.intention.name.cmp(&other.pool.intention.name));
            all.extend(found);
        }
        Ok(sorted(all))
    }

    /// The pools that a rule names for an interface; nothing if its list is empty.
    pub(crate) fn named_pools<'a>(
        &'a self,
        family: Family,
        patterns: &[NamePattern],
        (rule, interface): (Rule, &InterfaceName),
        work: &'a Work,
    ) -> Result<Option<Named<'a>>, Refusal> {
        if patterns.is_empty() {
            return Ok(None);
        }
        // What is named must be there, whichever pool gives in the end.
        let mut misnamed: Vec<Candidate<'_>> = Vec::new();
        for pattern in patterns {
            if let Some(name) = pattern.name() {
                let candidate = self.named_pool(&name, rule)?;
                let is_of_family = self.space(candidate.id).is_some_and(|space| space.family == family);
                if is_of_family && patterns.len() == 1 {
                    let candidates: Candidates<'_> = Box::new(iter::once(candidate));
                    return Ok(Some(candidates.into()));
                }
                if !is_of_family && misnamed.iter().all(|other| other.id != candidate.id) {
                    misnamed.push(candidate);
                }
            } else if !self.is_like_any(family, pattern, work) {
                // What was cut short names no pool.
                work.check()?;
                let (pattern, interface) = (pattern.clone(), interface.clone());
                return Err(Cause::NoPoolLike { family, pattern, interface, rule }.into());
            }
        }
        let ids = self.pools_like_any(family, patterns, work);
        let candidates = Box::new(ids.filter_map(|id| self.candidate(id)));
        Ok(Some(Named { candidates, misnamed }))
    }

    fn named_pool(&self, name: &Name, rule: Rule) -> Result<Candidate<'_>, Refusal> {
        let candidate = self.find::<Pool>(name).and_then(|id| self.candidate(id));
        candidate.ok_or_else(|| Cause::NamedPoolMissing { pool: name.clone(), rule }.into())
    }

    /// The default pools that may be for somebody, found as they are asked for; nothing if a family has none at all.
    fn default_pools(&self, family: Family, taker: &Taker<'_>) -> Option<Candidates<'_>> {
        let network = self.find::<Network>(&Name::default_name())?;
        self.default_keys_from(network, family, Anchor::Anyone).next()?;
        let of_anchor = |anchor: Anchor| {
            let keys = self.default_keys_from(network, family, anchor.clone());
            keys.take_while(move |(_, _, of, ..)| *of == anchor).peekable()
        };
        let mut found: Vec<_> = taker.anchors().into_iter().map(of_anchor).collect();
        found.retain_mut(|keys| keys.peek().is_some());
        if found.is_empty() {
            // Whose reasons are to be told.
            let mut seen = BTreeSet::new();
            let others = self.default_keys_from(network, family, Anchor::Anyone).map(|(.., id)| *id);
            let others = others.filter(move |id| seen.insert(*id)).take(REASONS_MAX);
            return Some(Box::new(others.filter_map(|id| self.candidate(id))));
        }
        // Each is in order; the first of all is the first of one of them.
        let next = move || {
            let first = found
                .iter_mut()
                .filter_map(|keys| keys.peek().copied().map(|(_, _, _, rank, name, _)| ((rank, name), keys)))
                .min_by(|(one, _), (other, _)| one.cmp(other));
            first.and_then(|(_, keys)| keys.next())
        };
        Some(Box::new(iter::from_fn(next).filter_map(|(.., id)| self.candidate(*id))))
    }

    /// The default pools with an address in their ranges, for whomever they are; some others if there are none. One pool
    /// owns the address at most; others of its subnet may have it in their ranges and exclude it.
    fn default_pools_around(&self, family: Family, address: IpAddr, work: &Work) -> Option<Candidates<'_>> {
        let network = self.find::<Network>(&Name::default_name())?;
        let all = || self.default_keys_from(network, family, Anchor::Anyone);
        all().next()?;
        let subnet = self.subnet_at(network, address).map(|(id, _)| id);
        let excluding =
            subnet.into_iter().flat_map(|id| self.index.excluding.range((id, Id::MIN)..=(id, Id::MAX)));
        let near = self.pool_at(network, address).into_iter().chain(excluding.map(|(_, pool)| *pool));
        let near = near.take_while(|_| work.take(UNITS_PER_POOL_JUDGED)).filter_map(|id| self.candidate(id));
        let has = |id: PoolId| self.space(id).is_some_and(|space| space.ranges.contains(number(address)));
        let mut found: Vec<Candidate<'_>> =
            near.filter(|near| near.pool.intention.default && has(near.id)).collect();
        if found.is_empty() {
            found = all().take(REASONS_MAX).filter_map(|(.., id)| self.candidate(*id)).collect();
        }
        found.sort_by_key(|one| (one.pool.intention.takers.rank(), &one.pool.intention.name));
        found.dedup_by_key(|one| one.id);
        Some(Box::new(found.into_iter()))
    }

    /// Under which default pools are found, from one anchor on.
    pub(crate) fn default_keys_from(
        &self,
        network: NetworkId,
        family: Family,
        anchor: Anchor,
    ) -> impl Iterator<Item = &DefaultKey> {
        let from = (network, family, anchor, MOST_SPECIFIC, Name::lowest(), Id::MIN);
        let keys = self.index.default_pools.range(from..);
        keys.take_while(move |(of, in_family, ..)| (*of, *in_family) == (network, family))
    }

    pub(crate) fn candidate(&self, id: PoolId) -> Option<Candidate<'_>> {
        self.pools.get(id).map(|pool| Candidate { id, pool })
    }
}

/// The first rule that is present, and the pools that it names.
fn rule<'a>(wish: &'a InterfaceWish, taker: &Taker<'a>) -> (Rule, &'a PoolPatterns) {
    if !wish.subnets.is_empty() && taker.has_own_pools() {
        (Rule::Automatic, &wish.pools)
    } else if !wish.subnets.is_empty() {
        (Rule::Subnets, &wish.pools)
    } else if !wish.pools.is_empty() {
        (Rule::Request, &wish.pools)
    } else if let Some(pools) = taker.default_pools() {
        (Rule::Namespace, pools)
    } else if !wish.default_pools.is_empty() {
        (Rule::Configuration, &wish.default_pools)
    } else {
        (Rule::Default, &wish.pools)
    }
}

/// Each once, where it was first named, the most specific first; nothing if there are none.
fn sorted(mut all: Vec<Candidate<'_>>) -> Option<Candidates<'_>> {
    let mut seen = BTreeSet::new();
    all.retain(|candidate| seen.insert(candidate.id));
    all.sort_by_cached_key(|candidate| candidate.pool.intention.takers.rank());
    (!all.is_empty()).then(|| Box::new(all.into_iter()) as Candidates<'_>)
}

impl State {
    /// Why a candidate gives nothing to somebody, if so.
    pub(crate) fn why_not(
        &self,
        candidate: &Candidate<'_>,
        taker: &Taker<'_>,
        grant: &Grant,
    ) -> Option<WhyNot> {
        let intention = &candidate.pool.intention;
        // First whether it is meant at all: pools that are for others make no difference, looked at or not.
        match () {
            () if let Some(why) = candidate.pool.why_not(taker) => Some(why),
            () if intention.terminating => Some(WhyNot::Terminating),
            () if intention.disabled => Some(WhyNot::Disabled),
            () if intention.drains_to.is_some() => Some(WhyNot::Drained),
            () if !self.is_confirmed(candidate.id) => Some(WhyNot::Unconfirmed),
            () if !fits(grant, &intention.remarks) => Some(WhyNot::TokenLabels),
            () => None,
        }
    }
}

impl State {
    /// Refuses to hand out again, after a restore, what may have become somebody else's since the backup.
    pub(crate) fn check_confirmed(
        &self,
        interface: &InterfaceName,
        family: Family,
        candidate: Candidate<'_>,
    ) -> Result<(), Refusal> {
        if self.is_confirmed(candidate.id) {
            return Ok(());
        }
        let pool = candidate.pool.intention.name.clone();
        let fallen = Fallen { id: candidate.id, pool, why: WhyNot::Unconfirmed };
        Err(self.nothing_fits(interface, family, &[fallen]))
    }
}

impl State {
    /// The refusal when every candidate fell.
    pub(crate) fn nothing_fits(
        &self,
        interface: &InterfaceName,
        family: Family,
        fallen: &[Fallen],
    ) -> Refusal {
        let meant: Vec<Code> =
            fallen.iter().map(|pool| pool.why.code()).filter(|code| *code != Code::NoPoolFits).collect();
        let code = match meant.as_slice() {
            [only] => *only,
            // That alone ends by itself: it is worth asking again.
            several if several.contains(&Code::GenerationUnconfirmed) => Code::GenerationUnconfirmed,
            _ => Code::NoPoolFits,
        };
        let unserved = self.unserved(interface, family, &[], fallen);
        Cause::NothingFits { unserved, code }.into()
    }

    /// The pools that can't give to an interface, the first of them.
    pub(crate) fn unserved(
        &self,
        interface: &InterfaceName,
        family: Family,
        exhausted: &[Candidate<'_>],
        fallen: &[Fallen],
    ) -> Unserved {
        let exhausted_pools = exhausted
            .iter()
            .map(|candidate| (candidate.id, &candidate.pool.intention.name, WhyNot::Exhausted));
        let fallen_pools = fallen.iter().map(|pool| (pool.id, &pool.pool, pool.why));
        let verdict = |(id, pool, why): (PoolId, &Name, WhyNot)| Verdict {
            pool: pool.clone(),
            why,
            counts: self.space(id).map(|space| space.counts()).unwrap_or_default(),
        };
        Unserved {
            interface: interface.clone(),
            family,
            next_free_ms: None,
            pools: exhausted_pools.chain(fallen_pools).take(POOLS_NAMED_MAX).map(verdict).collect(),
            count: (exhausted.len() + fallen.len()) as u64,
        }
    }

    /// In how many milliseconds of log time the first address of a pool has rested.
    pub(crate) fn next_free_ms(&self, space: &Space) -> Option<u64> {
        let oldest = space.cooling.get_min()?;
        Some(self.coolings.get(*oldest)?.until_ms.saturating_sub(self.log_time_ms()))
    }
}
