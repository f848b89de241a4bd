//! Plan of a delegation: the existing prefixes and the blocks of the new ones, chosen before any write.

use crate::apply::work::{Search, Work};
use crate::command::{Cause, Delegate, Kind, PoolSelectors, PrefixLevel, PrefixSource, Refusal};
use crate::prefix::delegate::no_prefix;
use crate::space::free_set::FreeSet;
use crate::state::State;
use crate::state::division::Division;
use crate::state::id::{ParentId, PoolId, PrefixId};
use crate::state::refuse::not_found;
use crate::state::row::{Prefix, PrefixOwner};
use crate::value::cause::{NamedPrefix, RejectReason};
use ipam_api::Family;
use ipnet::IpNet;

/// Plan of a delegation, complete before any write.
pub(crate) struct Plan {
    pub(crate) pool: PoolId,
    /// Parent of the first level: a pool or a prefix.
    pub(crate) source: ParentId,
    /// Prefixes above the first level, the lowest first. They are refreshed, too.
    pub(crate) above: Vec<PrefixId>,
    /// Existing levels.
    pub(crate) known: Vec<PrefixId>,
    /// New levels, each cut from the level before it.
    pub(crate) fresh: Vec<IpNet>,
}

impl State {
    /// Finds the existing prefixes, and a block for each missing level.
    pub(super) fn plan_prefixes(&self, request: &Delegate, search: Search<'_>) -> Result<Plan, Refusal> {
        let (source, pool) = self.open_source(&request.from, search)?;
        let mut plan = Plan {
            pool,
            source,
            above: self.prefix_chain(source.prefix()),
            known: Vec::new(),
            fresh: Vec::new(),
        };
        for level in &request.levels {
            let parent = plan.known.last().copied().map_or(source, ParentId::from);
            let owner = PrefixOwner { realm: request.realm.clone(), name: level.owner.clone() };
            if plan.fresh.is_empty()
                && let Some((id, row)) = self.prefix_of(parent, &owner)
            {
                self.check_same(id, row, level)?;
                plan.known.push(id);
                continue;
            }
            let Some(length) = level.length else {
                return Err(Cause::NoPrefixOf { owner: level.owner.clone() }.into());
            };
            let whole = plan.fresh.len().checked_sub(1).and_then(|last| {
                let keeps = request.levels.get(plan.known.len() + last)?.keep_edges;
                Some((*plan.fresh.get(last)?, keeps))
            });
            let cidr = match whole {
                Some((cidr, keep_edges)) => {
                    lowest_in(cidr, &Division::none_of(cidr, keep_edges).free, length)?
                }
                None => {
                    self.check_delegates(plan.pool, request)?;
                    match self.own_block(parent, &owner, length) {
                        Some(address) => address.into(),
                        None => self.lowest_block(plan.pool, parent, (length, search.work))?,
                    }
                }
            };
            plan.fresh.push(cidr);
        }
        Ok(plan)
    }

    /// Source of a request and the pool at its root, if the source hasn't ended and the rights permit it.
    pub(super) fn open_source(
        &self,
        from: &PrefixSource,
        search: Search<'_>,
    ) -> Result<(ParentId, PoolId), Refusal> {
        let source = self.source_of(from).filter(|(id, _)| !self.has_ended(id.prefix()));
        let (source, pool) = source.ok_or_else(|| match from {
            PrefixSource::Pool(name) => not_found(Kind::Pool, name),
            PrefixSource::Prefix(id) => no_prefix(*id),
        })?;
        self.permit_pool(search.grant, pool)?;
        Ok((source, pool))
    }

    /// The block that is cut next from a pool or a prefix.
    fn lowest_block(
        &self,
        pool: PoolId,
        parent: ParentId,
        (length, work): (u8, &Work),
    ) -> Result<IpNet, Refusal> {
        if let Some(row) = self.prefixes.get(parent.prefix()) {
            let division = self.index.divided.get(&parent.prefix()).cloned();
            let division = division.unwrap_or_else(|| Division::none_of(row.cidr, row.keep_edges).into());
            // Only a single address may be cooling, as in pools.
            let may_cool = length == row.cidr.max_prefix_len();
            return lowest_in(row.cidr, &division.free, length).or_else(|refusal| {
                let offered = self.prefix_cooling_offered(parent.prefix()).filter(|_| may_cool);
                offered.map(IpNet::from).ok_or(refusal)
            });
        }
        let (Some(row), Some(space)) = (self.pools.get(pool), self.space(pool)) else {
            return Err(Cause::PoolGone.into());
        };
        let name = &row.spec.name;
        let bits = space.family.bits();
        check_fits(length, bits)?;
        let free = space.free.lowest_block(bits - length).map(|first| space.family.address(first));
        // Only a single address may be cooling: a shorter prefix would need neighbours that cool together.
        let may_cool = length == bits && self.cooling_to_spare(&row.spec, space) > 0;
        let block = free.or_else(|| self.cooling_offered(space, work).next().filter(|_| may_cool));
        work.check()?;
        block.and_then(|first| IpNet::new(first, length).ok()).ok_or_else(|| {
            let counts = space.counts();
            Cause::NoBlock { length, pool: name.clone(), free: counts.free, size: counts.size }.into()
        })
    }

    /// Refuses a pool that is closed, or that doesn't select the requester.
    fn check_delegates(&self, pool: PoolId, request: &Delegate) -> Result<(), Refusal> {
        let Some(row) = self.pools.get(pool) else { return Ok(()) };
        let spec = &row.spec;
        let realms = &spec.selectors.realms;
        let others = PoolSelectors { realms: Vec::new(), ..spec.selectors.clone() };
        let why = if !realms.is_empty() && !realms.contains(&request.realm) {
            RejectReason::OtherRealms
        } else if row.automatic.is_some() {
            RejectReason::OtherApplication
        } else if others != PoolSelectors::default() {
            RejectReason::EndpointsOnly
        } else if let Some(closed) = self.closed_reason(pool, spec) {
            closed.into()
        } else {
            return Ok(());
        };
        Err(Cause::PoolDelegatesNot { pool: spec.name.clone(), why }.into())
    }

    /// Refuses to answer with a prefix that differs from the request.
    fn check_same(&self, id: PrefixId, row: &Prefix, level: &PrefixLevel) -> Result<(), Refusal> {
        let prefix = NamedPrefix::of(id, row);
        if self.has_ended(id) {
            return Err(Cause::PrefixEnded { prefix }.into());
        }
        let Some(length) = level.length else { return Ok(()) };
        if length != row.cidr.prefix_len() || level.keep_edges != row.keep_edges {
            return Err(Cause::OtherPrefix { prefix, keeps_edges: row.keep_edges }.into());
        }
        Ok(())
    }
}

/// The lowest free block of a length in a prefix.
fn lowest_in(cidr: IpNet, free: &FreeSet, length: u8) -> Result<IpNet, Refusal> {
    check_fits(length, cidr.max_prefix_len())?;
    if length <= cidr.prefix_len() {
        return Err(Cause::NotLonger { length, above: cidr.prefix_len() }.into());
    }
    let first = free.lowest_block(cidr.max_prefix_len() - length);
    let block = first.and_then(|first| IpNet::new(Family::of(cidr.addr()).address(first), length).ok());
    block.ok_or_else(|| Cause::NoBlockInPrefix { length, cidr }.into())
}

fn check_fits(length: u8, bits: u8) -> Result<(), Refusal> {
    if length <= bits {
        return Ok(());
    }
    Err(Cause::LengthOfFamily { length, bits }.into())
}
